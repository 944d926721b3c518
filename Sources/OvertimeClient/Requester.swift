package import AMQP
package import Contract
import Service

/// Why a question had no answer.
package enum RequestFailure: Error, Sendable {
    /// Wrong for good: password, virtual host, a right, a missing exchange.
    case broker(AMQPError)
    /// The broker could not be reached in time; the last error, if there was one.
    case unreachable(AMQPError?)
    /// No queue takes such messages: no worker has declared it yet.
    case unroutable(exchange: String)
    /// A queue that a worker declares is not there.
    case missing(queue: String)
    /// The broker's queue is full or has no quorum.
    case refused
    /// It was published, and nobody answered in time.
    case noReply
    /// This process lacks what it needs.
    case resources(String)
}

extension RequestFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .broker(let error): "the broker refuses: \(error)"
        case .unreachable(let error):
            "the broker cannot be reached" + (error.map { ": \($0)" } ?? "")
        case .unroutable(let exchange):
            "no queue takes what is published to \(exchange): start a worker once, or check amqp.prefix and amqp.shards"
        case .missing(let queue):
            "there is no queue \(queue): start a worker once, or check amqp.prefix"
        case .refused: "the broker refused the message: its queue is full or has no quorum"
        case .noReply: "no reply in time: is a worker running?"
        case .resources(let reason): "this process cannot go on: \(reason)"
        }
    }
}

/// Publishes questions and waits for their answers, on one short-lived connection with a queue of its own.
///
/// Waits for a broker that cannot be reached, and asks again after a lost connection: what it sends must be safe to
/// repeat, as commands with an id and queries are.
package final class Requester {
    /// One message and whether it is to be answered.
    package struct Request: Sendable {
        package let exchange: ShortString
        package let routingKey: ShortString
        package let body: [UInt8]
        package let isPersistent: Bool
        package let waitsForReply: Bool

        package init(
            exchange: ShortString, routingKey: ShortString, body: [UInt8], isPersistent: Bool,
            waitsForReply: Bool = true
        ) {
            self.exchange = exchange
            self.routingKey = routingKey
            self.body = body
            self.isPersistent = isPersistent
            self.waitsForReply = waitsForReply
        }
    }

    private enum Channel {
        static let replies = 0
        static let questions = 1
    }

    private let mailbox = Mailbox<LinkEvent>()
    private let link: Link
    private let queue: OwnReplies
    /// Whom the broker vouches for: what an operator may do hangs on it.
    private let user: ShortString?
    private var nextID: UInt64 = 1
    private var generation: UInt64?
    private var isListening = false
    private var lastError: AMQPError?
    /// The exchange was not there at the last try: no worker has been started on this broker yet.
    private var isExchangeMissing = false

    private static let retryInterval: Int64 = 300

    package init(connection: LinkConfiguration, topology: Topology, component: String) {
        let queue = OwnReplies(topology: topology, component: component)
        let mailbox = mailbox
        self.queue = queue
        // Whom a certificate names only the broker knows, and another name than that it refuses.
        user = connection.login == .password ? ShortString(connection.endpoint.user) : nil
        link = Link(
            configuration: connection,
            channels: {
                [
                    ChannelPlan(
                        declare: queue.declarations,
                        consumers: [ConsumerPlan(queue: queue.name, tag: "replies", noAck: true)]),
                    ChannelPlan(confirms: true),
                ]
            },
            observer: { events in
                queue.note(events)
                mailbox.put(events)
            })
        link.start()
    }

    package func close() { link.stop() }

    /// Publishes one request and waits for its answer until `deadline` of the monotonic clock (milliseconds); an empty
    /// answer where none was asked for.
    package func ask(_ request: Request, until deadline: Int64) -> Result<[UInt8], RequestFailure> {
        var isPublished = false
        var isUnroutable = false
        var notBefore: Int64 = 0
        let correlation = RandomToken.make()
        var id: UInt64 = 0
        while true {
            let now = MonotonicClock.milliseconds()
            if !isPublished, isListening, now >= notBefore, let generation {
                id = nextID
                nextID += 1
                link.publish(
                    [publication(request, id: id, correlation: correlation)], on: Channel.questions,
                    generation: generation)
                isPublished = true
            }
            guard now < deadline else {
                if isUnroutable || isExchangeMissing {
                    return .failure(.unroutable(exchange: request.exchange.description))
                }
                return .failure(isPublished ? .noReply : .unreachable(lastError))
            }
            let pause = isPublished || notBefore <= now ? deadline : min(deadline, notBefore)
            for event in mailbox.take(timeoutMilliseconds: pause - now) {
                switch event {
                case .delivery(Channel.replies, let delivery):
                    guard delivery.properties.correlationID?.string == correlation else { continue }
                    if case .bytes(let body) = delivery.body { return .success(body) }
                case .confirmed(Channel.questions, let ids):
                    if !request.waitsForReply, ids.contains(id) { return .success([]) }
                case .refused(Channel.questions, _):
                    return .failure(.refused)
                case .returned:
                    // A worker that is just starting declares the queue in a moment.
                    isUnroutable = true
                    isPublished = false
                    notBefore = MonotonicClock.milliseconds() + Self.retryInterval
                default:
                    if let failure = note(event) { return .failure(failure) }
                    if generation == nil || !isListening { isPublished = false }
                }
            }
        }
    }

    private func note(_ event: LinkEvent) -> RequestFailure? {
        switch event {
        case .channelOpened(Channel.replies, _): isListening = true
        case .channelOpened(_, let opened):
            generation = opened
        case .channelClosed(let channel, _, let error, _):
            if channel == Channel.replies { isListening = false } else { generation = nil }
            guard let error, error.scope == .channel, error.isConfiguration else { break }
            guard channel == Channel.questions, error.kind == .notFound else { return .broker(error) }
            isExchangeMissing = true
        case .disconnected(let error, _):
            lastError = error
            if error.isConfiguration { return .broker(error) }
        default: break
        }
        return nil
    }

    private func publication(_ request: Request, id: UInt64, correlation: String) -> Publication {
        Publication(
            id: id, exchange: request.exchange, routingKey: request.routingKey, mandatory: true,
            properties: Properties(
                contentType: "application/json", deliveryMode: request.isPersistent ? 2 : 1,
                correlationID: ShortString(correlation), replyTo: request.waitsForReply ? queue.name : nil,
                messageID: ShortString("\(correlation).\(id)"), userID: user, appID: "overtime"),
            body: request.body)
    }
}
