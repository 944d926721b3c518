internal import AMQP
internal import Contract

/// Publishes dead letters as commands again, on a connection of its own, and tells what became of each.
final class RetryPublisher {
    /// A letter on its way, with what is needed to take it out of its queue.
    struct Retry {
        let id: LetterID
        let key: LetterBag.Key
        let isCounted: Bool
        let tag: DeliveryTag
    }

    struct Settled {
        let retry: Retry
        let outcome: DeadLetterBox.Outcome
    }

    private let exchange: ShortString
    private let link: Link
    private var generation: UInt64?
    private var waiting: [Publication] = []
    private var inFlight: [UInt64: Retry] = [:]
    private var nextPublication: UInt64 = 1
    private(set) var hasPublished = false

    /// How many publications may lack an outcome.
    private static let window = 256

    init(
        connection: LinkConfiguration, exchange: ShortString,
        observer: @escaping @Sendable ([LinkEvent]) -> Void
    ) {
        self.exchange = exchange
        link = Link(
            configuration: connection, channels: { [ChannelPlan(confirms: true)] }, observer: observer)
        link.start()
    }

    func close() { link.stop() }

    var isReady: Bool { generation != nil }
    var isIdle: Bool { inFlight.isEmpty }
    /// Those without an outcome.
    var open: [Retry] { Array(inFlight.values) }

    func add(_ retry: Retry, _ command: RestoredCommand, body: [UInt8]) {
        inFlight[nextPublication] = retry
        waiting.append(
            Publication(
                id: nextPublication, exchange: exchange, routingKey: command.routingKey, mandatory: true,
                properties: command.properties, body: body))
        nextPublication += 1
    }

    /// Forgets what was never published.
    func reset() {
        waiting = []
        inFlight = [:]
    }

    func publish() {
        guard let generation, !waiting.isEmpty else { return }
        let sent = inFlight.count - waiting.count
        let next = Array(waiting.prefix(max(0, Self.window - sent)))
        guard !next.isEmpty else { return }
        hasPublished = true
        waiting.removeFirst(next.count)
        link.publish(next, on: 0, generation: generation)
    }

    func take(_ event: LinkEvent) -> Result<[Settled], OvertimeError> {
        switch event {
        case .channelOpened(_, let opened): generation = opened
        case .confirmed(_, let ids): return .success(settle(ids, .retried))
        case .refused(_, let ids): return .success(settle(ids, .refused))
        case .returned(_, let id, _, _): return .success(settle([id], .returned))
        case .channelClosed(_, _, let error?, _):
            generation = nil
            if error.kind == .notFound {
                return .failure(.noWorker("no queue takes what is published to \(exchange)"))
            }
            if let failure = failure(error) { return .failure(failure) }
        case .disconnected(let error, _):
            if let failure = failure(error) { return .failure(failure) }
        default: break
        }
        return .success([])
    }

    /// Before anything was published another try is safe.
    private func failure(_ error: AMQPError) -> OvertimeError? {
        if error.isConfiguration { return .brokerRefuses("\(error)") }
        return hasPublished ? .unreachable("\(error)") : nil
    }

    private func settle(_ ids: [UInt64], _ outcome: DeadLetterBox.Outcome) -> [Settled] {
        ids.compactMap { id in
            inFlight.removeValue(forKey: id).map { Settled(retry: $0, outcome: outcome) }
        }
    }
}
