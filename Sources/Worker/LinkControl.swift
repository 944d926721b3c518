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
///
/// Each shard has a channel of its own, so that it can be handed over without the others.
package enum ConsumerChannel {
    package static let ticks = 0
    package static let queries = 1
    /// The first shard's; those of the others follow in order of number.
    package static let commands = 2

    package static func commands(of shard: Int) -> Int { commands + shard }
    /// The shard that a channel consumes; nil for ticks and queries.
    package static func shard(of channel: Int) -> Int? { channel >= commands ? channel - commands : nil }
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
