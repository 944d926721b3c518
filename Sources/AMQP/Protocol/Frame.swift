/// What the broker says, with its bytes copied out of the library's pool.
enum Frame: Hashable, Sendable {
    case deliver(DeliverMethod)
    case returned(ReturnMethod)
    case header(bodySize: UInt64, properties: Properties)
    case body([UInt8])
    case confirm(tag: UInt64, multiple: Bool, isAck: Bool)
    case reply(Reply)
    /// The answer `queueDeclare` with how many messages are ready in the queue, and how many consume it.
    case queueDeclared(messages: UInt32, consumers: UInt32)
    case cancel(consumerTag: ShortString, noWait: Bool)
    case flow(active: Bool)
    case channelClose(AMQPError)
    case channelCloseOK
    case connectionClose(AMQPError)
    case connectionCloseOK
    case blocked(reason: String)
    case unblocked
    /// A method that nobody asked for.
    case other(UInt32)

    /// The answers that opening a channel waits for, one at a time.
    enum Reply: Hashable, Sendable {
        case open
        case exchangeDeclare
        case queueDeclare
        case queueBind
        case exchangeBind
        case qos
        case confirmSelect
        case consume
    }
}

struct DeliverMethod: Hashable, Sendable {
    var consumerTag: ShortString
    var deliveryTag: UInt64
    var redelivered: Bool
    var exchange: ShortString
    var routingKey: ShortString
}

struct ReturnMethod: Hashable, Sendable {
    var code: UInt16
    var text: String
    var exchange: ShortString
    var routingKey: ShortString
}

/// What a channel says to the broker, apart from publications.
enum ChannelMethod: Hashable, Sendable {
    case open
    case declare(DeclarationStep)
    case qos(prefetch: UInt16)
    case confirmSelect
    case consume(ConsumerPlan)
    case acknowledge(tag: UInt64, multiple: Bool)
    case reject(tag: UInt64, requeue: Bool)
    case cancelOK(consumerTag: ShortString)
    case flowOK(active: Bool)
    case close
    case closeOK

    /// The answer that this method asks for, `nil` if none.
    var reply: Frame.Reply? {
        switch self {
        case .open: .open
        case .declare(let step):
            switch step.declaration {
            case .exchange: .exchangeDeclare
            case .queue: .queueDeclare
            case .bindQueue: .queueBind
            case .bindExchange: .exchangeBind
            }
        case .qos: .qos
        case .confirmSelect: .confirmSelect
        case .consume: .consume
        case .acknowledge, .reject, .cancelOK, .flowOK, .close, .closeOK: nil
        }
    }
}
