package import AMQP

/// What the worker asks of a connection; the real one is `Link`, the simulation has its own.
package protocol LinkControl: AnyObject, Sendable {
    func publish(_ publications: [Publication], on channel: Int, generation: UInt64)
    func acknowledge(_ tags: [DeliveryTag], on channel: Int)
    func reject(_ tag: DeliveryTag, requeue: Bool, on channel: Int)
    func openChannel(_ channel: Int)
    func closeChannel(_ channel: Int)
}

extension Link: LinkControl {}

/// The channels of the consuming connection, which never publishes: under a resource alarm the broker stops reading
/// from connections that publish, and with it their acknowledgements.
package enum ConsumerChannel {
    package static let commands = 0
    package static let ticks = 1
    package static let queries = 2
}

/// The channels of the publishing connection: a missing reply exchange closes the replies' channel and no other.
package enum PublisherChannel {
    package static let events = 0
    package static let replies = 1
    package static let letters = 2
    /// Declares the log, and nothing else: a log that is down stops nothing.
    package static let log = 3
    /// Declares, again and again, what no other channel would miss: exchanges that only others publish to.
    package static let topology = 4
    static let declaring = [log, topology]
}
