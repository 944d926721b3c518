/// One consumer of a channel.
package struct ConsumerPlan: Hashable, Sendable {
    package var queue: ShortString
    package var tag: ShortString
    package var noAck: Bool
    package var exclusive: Bool
    package var arguments: Table

    package init(
        queue: ShortString, tag: ShortString, noAck: Bool = false, exclusive: Bool = false,
        arguments: Table = Table()
    ) {
        self.queue = queue
        self.tag = tag
        self.noAck = noAck
        self.exclusive = exclusive
        self.arguments = arguments
    }
}

/// What a channel does each time it opens: declare, limit, confirm, consume, in this order.
package struct ChannelPlan: Hashable, Sendable {
    package static let defaultMaximumBodyBytes = 16 << 20
    /// A body up to this size is small: it counts towards no budget.
    package static let smallBodyBytes = 64 << 10

    package var declare: [DeclarationStep]
    /// Without confirms a publication has no outcome at all: nothing is reported for it.
    package var confirms: Bool
    /// Unacknowledged deliveries per consumer; 0 is no limit.
    package var prefetch: UInt16
    package var consumers: [ConsumerPlan]
    /// Larger bodies are delivered as `.discarded`.
    package var maximumBodyBytes: Int
    /// The most bytes of bodies that are not small in unacknowledged deliveries: what goes beyond is delivered as
    /// `.discarded`, so that a prefetch of large bodies does not fill the memory.
    package var largeBodyBudget: Int
    /// Whether the numbers of messages and consumers of each declared queue are told (`queueCounted`).
    package var countsMessages: Bool
    /// Whether the channel counts as open only when the broker has answered once more after the consumers: a stream's
    /// consumer is confirmed before it is attached, and what is published in between would be missed.
    package var settlesConsumers: Bool
    /// Whether the channel opens by itself with the connection, before anybody has asked for either.
    package var startsOpen: Bool

    package init(
        declare: [DeclarationStep] = [], confirms: Bool = false, prefetch: UInt16 = 0,
        consumers: [ConsumerPlan] = [], maximumBodyBytes: Int = ChannelPlan.defaultMaximumBodyBytes,
        largeBodyBudget: Int = .max, countsMessages: Bool = false, settlesConsumers: Bool = false,
        startsOpen: Bool = true
    ) {
        self.declare = declare
        self.confirms = confirms
        self.prefetch = prefetch
        self.consumers = consumers
        self.maximumBodyBytes = maximumBodyBytes
        self.largeBodyBudget = largeBodyBudget
        self.countsMessages = countsMessages
        self.settlesConsumers = settlesConsumers
        self.startsOpen = startsOpen
    }
}
