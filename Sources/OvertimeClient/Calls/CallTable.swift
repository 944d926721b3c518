import AMQP
import Contract
import Service
import Synchronization

/// The calls under way, each with its state; told what the link tells.
///
/// ```
///  begin ─► waiting ──► published ──► finished: answered, confirmed, refused, too late, cancelled, closed
///              ▲            │
///              └────────────┘ the connection was lost, or no queue took it
/// ```
final class CallTable: Sendable {
    typealias Answer = Result<[UInt8], OvertimeError>

    private static let replies = 0

    private struct Call {
        /// Nil for one that only waits for the connection.
        let question: Caller.Question?
        let continuation: CheckedContinuation<Answer, Never>
        var timer: Task<Void, Never>?
        var isPublished = false
        /// What became of it the last time.
        var setback: Setback?
        /// Publications that the broker has not given back or refused.
        var arrived = 0
    }

    private enum Setback {
        /// No queue took it.
        case returned
        /// A queue did not.
        case refused
    }

    /// A publication without an outcome.
    private struct Sent {
        let call: UInt64
        let kind: Caller.Question.Kind
    }

    private struct State {
        weak var link: Link?
        var calls: [UInt64: Call] = [:]
        var sent: [UInt64: Sent] = [:]
        var nextCall: UInt64 = 1
        var nextPublication: UInt64 = 1
        /// The lives of the open channels for questions.
        var generations: [Caller.Question.Kind: UInt64] = [:]
        var isListening = false
        var isClosed = false
        var lastError: AMQPError?
        /// Why nothing can be asked; until the connection stands.
        var failure: OvertimeError?
        /// The exchange was not there at the last try: no worker has been started on this broker yet.
        var missing: Set<Caller.Question.Kind> = []

        /// The life in which a question can be asked now; any for nil.
        func generation(for question: Caller.Question?) -> UInt64? {
            guard isListening else { return nil }
            return question.map { generations[$0.kind] } ?? generations.values.first
        }
    }

    private let queue: OwnReplies
    private let user: ShortString?
    /// Tells this table's correlations from those of another process or an earlier connection.
    private let token = RandomToken.make()
    private let state = Mutex(State())

    /// The most calls under way at once.
    private static let most = 10_000
    private static let retryInterval: Duration = .milliseconds(300)

    init(queue: OwnReplies, user: ShortString?) {
        self.queue = queue
        self.user = user
    }

    func attach(_ link: Link) { state.withLock { $0.link = link } }

    // MARK: Calls

    /// A number for a call, so that it can be cancelled before it has begun.
    func reserve() -> UInt64 {
        state.withLock { state in
            defer { state.nextCall += 1 }
            return state.nextCall
        }
    }

    func begin(
        _ number: UInt64, _ question: Caller.Question?, _ continuation: CheckedContinuation<Answer, Never>,
        timeout: Duration
    ) {
        let refusal = state.withLock { state -> OvertimeError? in
            guard !state.isClosed else { return state.failure ?? .closed }
            if let failure = state.failure { return failure }
            guard state.calls.count < Self.most else {
                return .overloaded("\(Self.most) calls are under way: wait for some of them")
            }
            state.calls[number] = Call(question: question, continuation: continuation)
            return nil
        }
        if let refusal { return continuation.resume(returning: .failure(refusal)) }
        // The handler of a task that was cancelled before has already run, and found nothing.
        guard !Task.isCancelled else { return finish(number, .failure(.cancelled)) }
        let timer = Task { [weak self] in
            await MonotonicClock.pause(timeout)
            if !Task.isCancelled { self?.expire(number) }
        }
        state.withLock { state in
            if state.calls[number] == nil { timer.cancel() } else { state.calls[number]?.timer = timer }
        }
        proceed(number)
    }

    /// The first outcome counts; later ones find nothing.
    func finish(_ number: UInt64, _ answer: Answer) {
        guard let call = state.withLock({ $0.calls.removeValue(forKey: number) }) else { return }
        call.timer?.cancel()
        call.continuation.resume(returning: answer)
    }

    func close() {
        let numbers = state.withLock { state in
            state.isClosed = true
            return Array(state.calls.keys)
        }
        for number in numbers { finish(number, .failure(.closed)) }
    }

    /// Ends a call that was not carried out, unless it may have been.
    private func fail(_ number: UInt64, _ error: OvertimeError) {
        let mayHaveArrived = state.withLock { $0.calls[number].map { $0.arrived > 0 } ?? false }
        finish(number, .failure(mayHaveArrived ? .noReply : error))
    }

    private func expire(_ number: UInt64) {
        let error = state.withLock { state -> OvertimeError in
            guard let call = state.calls[number], let question = call.question else {
                return .unreachable(state.lastError.map { "\($0)" } ?? "")
            }
            if call.setback == .refused {
                return .overloaded("the broker refused the message: its queue is full or has no quorum")
            }
            if call.setback == .returned || state.missing.contains(question.kind) {
                return .noWorker("no queue takes what is published to \(question.exchange)")
            }
            return .unreachable(state.lastError.map { "\($0)" } ?? "")
        }
        fail(number, error)
    }

    /// Publishes a call that waits, once that is possible.
    private func proceed(_ number: UInt64) {
        let isOver = state.withLock { state -> Bool in
            guard let call = state.calls[number], !call.isPublished,
                let generation = state.generation(for: call.question)
            else { return false }
            guard let question = call.question else { return true }
            publish(question, number, generation, &state)
            return false
        }
        if isOver { finish(number, .success([])) }
    }

    private func publish(
        _ question: Caller.Question, _ number: UInt64, _ generation: UInt64, _ state: inout State
    ) {
        guard let link = state.link else { return }
        let id = state.nextPublication
        state.nextPublication += 1
        state.sent[id] = Sent(call: number, kind: question.kind)
        state.calls[number]?.isPublished = true
        state.calls[number]?.arrived += 1
        let properties = Properties(
            contentType: "application/json", deliveryMode: question.isPersistent ? 2 : 1,
            correlationID: ShortString("\(token).\(number)"),
            replyTo: question.waitsForReply ? queue.name : nil,
            messageID: ShortString("\(token).\(number).\(id)"), userID: user, appID: "overtime")
        link.publish(
            [
                Publication(
                    id: id, exchange: question.exchange, routingKey: question.routingKey, mandatory: true,
                    properties: properties, body: question.body)
            ], on: question.kind.rawValue, generation: generation)
    }

    // MARK: What the link tells

    func handle(_ events: [LinkEvent]) {
        queue.note(events)
        for event in events { handle(event) }
    }

    private func handle(_ event: LinkEvent) {
        switch event {
        case .delivery(Self.replies, let delivery):
            guard let number = number(of: delivery.properties.correlationID),
                case .bytes(let body) = delivery.body
            else { return }
            finish(number, .success(body))
        case .confirmed(_, let ids):
            for id in ids { confirmed(id) }
        case .refused(_, let ids):
            for case let sent? in ids.map({ settle($0, hasArrived: false) }) { tryAgain(sent.call, .refused) }
        case .returned(_, let id, _, _):
            if let sent = settle(id, hasArrived: false) { tryAgain(sent.call, .returned) }
        case .channelOpened(let channel, let generation):
            opened(channel, generation)
        case .channelClosed(let channel, _, let error, _):
            closed(channel, error)
        case .disconnected(let error, _):
            state.withLock { $0.lastError = error }
            if error.isConfiguration { failAll(.brokerRefuses("\(error)")) }
            if error.kind == .resources { failAll(.resources("\(error)")) }
        case .stopped:
            close()
        default: break
        }
    }

    private func number(of correlation: ShortString?) -> UInt64? {
        guard let text = correlation?.string, text.hasPrefix(token + ".") else { return nil }
        return UInt64(text.dropFirst(token.utf8.count + 1))
    }

    /// Takes note of a publication's outcome.
    private func settle(_ id: UInt64, hasArrived: Bool) -> Sent? {
        state.withLock { state in
            guard let sent = state.sent.removeValue(forKey: id) else { return nil }
            if !hasArrived { state.calls[sent.call]?.arrived -= 1 }
            return sent
        }
    }

    private func confirmed(_ id: UInt64) {
        guard let sent = settle(id, hasArrived: true) else { return }
        let waits = state.withLock { state in
            state.missing.remove(sent.kind)
            state.calls[sent.call]?.setback = nil
            return state.calls[sent.call]?.question?.waitsForReply ?? true
        }
        if !waits { finish(sent.call, .success([])) }
    }

    /// A worker that is just starting declares the queue in a moment; a queue has its quorum, or room, in another.
    private func tryAgain(_ number: UInt64, _ setback: Setback) {
        state.withLock { state in
            state.calls[number]?.isPublished = false
            state.calls[number]?.setback = setback
        }
        Task { [weak self] in
            await MonotonicClock.pause(Self.retryInterval)
            self?.proceed(number)
        }
    }

    private func opened(_ channel: Int, _ generation: UInt64) {
        let waiting = state.withLock { state -> [UInt64] in
            if channel == Self.replies { state.isListening = true }
            if let kind = Caller.Question.Kind(rawValue: channel) { state.generations[kind] = generation }
            if state.isListening, !state.generations.isEmpty { state.failure = nil }
            return state.calls.filter { !$0.value.isPublished }.keys.sorted()
        }
        for number in waiting { proceed(number) }
    }

    /// Whatever was published on it is published again: its answer may have gone to a queue that is no more.
    private func closed(_ channel: Int, _ error: AMQPError?) {
        let kind = Caller.Question.Kind(rawValue: channel)
        let concerned = state.withLock { state -> [UInt64] in
            if let kind { state.generations[kind] = nil } else { state.isListening = false }
            let lost = state.sent.filter { kind == nil || $0.value.kind == kind }
            for (id, sent) in lost {
                state.sent[id] = nil
                // Where the exchange is not there nothing reached a queue.
                if error?.kind == .notFound { state.calls[sent.call]?.arrived -= 1 }
            }
            let concerned = state.calls.filter { kind == nil || $0.value.question?.kind == kind }.keys
            for number in concerned { state.calls[number]?.isPublished = false }
            if let kind, error?.kind == .notFound { state.missing.insert(kind) }
            if let error { state.lastError = error }
            return Array(concerned)
        }
        guard let error, error.scope == .channel, error.isConfiguration else { return }
        if kind != nil, error.kind == .notFound { return }
        for number in concerned { fail(number, .brokerRefuses("\(error)")) }
    }

    /// Fails what is under way and what comes, until the connection stands.
    private func failAll(_ error: OvertimeError) {
        let numbers = state.withLock { state in
            if !state.isListening { state.failure = error }
            return Array(state.calls.keys)
        }
        for number in numbers { fail(number, error) }
    }
}
