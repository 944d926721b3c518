import AMQP

/// A publication as the broker has it; one object for all queues that took it.
final class Message {
    let exchange: ShortString
    let routingKey: ShortString
    let properties: Properties
    let body: [UInt8]
    /// Stands for a body larger than any channel holds.
    let isOversized: Bool
    /// The broker has answered its publisher: it is safe in every queue that took it.
    var isSettled = false

    init(
        exchange: ShortString, routingKey: ShortString, properties: Properties, body: [UInt8],
        isOversized: Bool = false
    ) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.properties = properties
        self.body = body
        self.isOversized = isOversized
    }

    convenience init(_ publication: Publication) {
        self.init(
            exchange: publication.exchange, routingKey: publication.routingKey,
            properties: publication.properties, body: publication.body)
    }

    var correlation: String? { properties.correlationID?.string }
}

/// A message in a queue, at its place there.
struct Stored {
    let message: Message
    let number: UInt64
    var isRedelivered = false
    let expiresAt: Int64?
}
