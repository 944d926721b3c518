import AMQP
import Service

/// The shared objects, declared again from time to time.
///
/// Somebody may delete an exchange that this worker never publishes to: no channel of its own would notice, and
/// everybody's commands or ticks would go nowhere. Declaring what is there already changes nothing and costs a few round
/// trips. The event log has a channel of its own: one that is down stops nothing else.
extension Worker {
    private static let topologyInterval: Int64 = 15_000

    func declareTopology(at uptime: Int64) {
        guard phase == .serving, uptime >= topologyAt else { return }
        topologyAt = uptime + Self.topologyInterval
        // One that failed is being tried again by the link.
        for channel in PublisherChannel.declaring where links.declaring.contains(channel) {
            publisher.closeChannel(channel)
            publisher.openChannel(channel)
        }
    }

    func topologyDeclared(on channel: Int) {
        links.declaring.insert(channel)
        if channel == PublisherChannel.topology { links.hasDeclared = true }
        if links.isWell(name(channel)) { log.info("declared again", ["what": name(channel)]) }
    }

    func topologyNotDeclared(on channel: Int, _ error: AMQPError?) {
        links.declaring.remove(channel)
        guard let error, error.scope == .channel, links.isNews(error, of: name(channel)) else { return }
        if channel == PublisherChannel.log {
            log.warning(
                "the event log is not available: tried again, nothing else waits for it",
                ["error": error.description])
        } else {
            log.warning("the topology cannot be declared: tried again", ["error": error.description])
        }
    }

    private func name(_ channel: Int) -> String {
        channel == PublisherChannel.log ? "event log" : "topology"
    }
}
