/// A delivery's number together with the life of the channel that it belongs to.
///
/// Numbers start at 1 again on every new channel. An acknowledgement of an older life would settle somebody else's
/// message, or close the channel with 406, so the link drops it.
package struct DeliveryTag: Hashable, Sendable {
    package let generation: UInt64
    package let number: UInt64

    package init(generation: UInt64, number: UInt64) {
        self.generation = generation
        self.number = number
    }
}

/// A message's body, unless it was too large to be held.
package enum Body: Hashable, Sendable {
    case bytes([UInt8])
    /// Larger than the channel's `maximumBodyBytes`, or beyond its `largeBodyBudget`: its bytes were dropped as they came.
    case discarded(size: UInt64)
}

/// One message from a queue. A reference to what never changes: it passes through many hands on its way, and copying
/// a value of so many parts at each of them took longer than deciding what it asks for.
package final class Delivery: Sendable {
    package let consumerTag: ShortString
    package let tag: DeliveryTag
    package let redelivered: Bool
    package let exchange: ShortString
    package let routingKey: ShortString
    package let properties: Properties
    package let body: Body

    package init(
        consumerTag: ShortString, tag: DeliveryTag, redelivered: Bool, exchange: ShortString,
        routingKey: ShortString, properties: Properties, body: Body
    ) {
        self.consumerTag = consumerTag
        self.tag = tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routingKey = routingKey
        self.properties = properties
        self.body = body
    }
}

/// One message to publish. A reference to what never changes, as a `Delivery` is.
package final class Publication: Sendable {
    /// The caller's own number, unique within one life of the channel: its outcome is told by this number.
    package let id: UInt64
    package let exchange: ShortString
    package let routingKey: ShortString
    /// The broker hands the message back if no queue takes it. Such a publication should carry a message id, unique
    /// among those in flight: a returned message has no number, and is recognised by it.
    package let mandatory: Bool
    package let properties: Properties
    package let body: [UInt8]

    package init(
        id: UInt64, exchange: ShortString, routingKey: ShortString, mandatory: Bool, properties: Properties,
        body: [UInt8]
    ) {
        self.id = id
        self.exchange = exchange
        self.routingKey = routingKey
        self.mandatory = mandatory
        self.properties = properties
        self.body = body
    }
}

extension Delivery: Hashable {
    package static func == (left: Delivery, right: Delivery) -> Bool {
        left.tag == right.tag && left.consumerTag == right.consumerTag
            && left.redelivered == right.redelivered && left.exchange == right.exchange
            && left.routingKey == right.routingKey && left.properties == right.properties
            && left.body == right.body
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(tag) }
}

extension Publication: Hashable {
    package static func == (left: Publication, right: Publication) -> Bool {
        left.id == right.id && left.exchange == right.exchange && left.routingKey == right.routingKey
            && left.mandatory == right.mandatory && left.properties == right.properties
            && left.body == right.body
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
