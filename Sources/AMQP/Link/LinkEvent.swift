/// What a link tells its observer. The first number of most cases is the channel's index in the plans.
package enum LinkEvent: Hashable, Sendable {
    /// `attempt` counts from 1 and starts again after a connection that lasted; each goes round all nodes.
    case connecting(attempt: Int)
    /// `node` is the host and port among those of the configuration.
    case connected(brokerVersion: String, properties: Table, node: String = "")
    /// Declared, limited, consuming: publications of this generation are welcome, deliveries follow.
    case channelOpened(Int, generation: UInt64)
    /// A queue that the channel declares has this many messages ready and this many consumers; only where the plan asks for it, and before
    /// `channelOpened`.
    case queueCounted(Int, messages: UInt32, consumers: UInt32)
    /// The end of a generation, or of the attempt to open one. No error: it was closed on request. `unknown` are the
    /// publications without an outcome; one handed over after this event is dropped without a word.
    case channelClosed(Int, generation: UInt64, AMQPError?, unknown: [UInt64])
    /// After the `channelClosed` of every channel; also for an attempt that failed on every node.
    case disconnected(AMQPError, retryInMilliseconds: Int64)
    /// The broker takes no publications for now; they are held here. Acknowledgements go on.
    case blocked(reason: String)
    case unblocked
    case delivery(Int, Delivery)
    case confirmed(Int, [UInt64])
    /// Refused by the broker, or impossible to send (properties larger than a frame).
    case refused(Int, [UInt64])
    /// Confirmed, but no queue took it.
    case returned(Int, UInt64, code: UInt16, text: String)
    /// The last event of a link.
    case stopped
}
