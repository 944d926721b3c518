import AMQP
import Contract
import FoundationEssentials
import RoomCore
import Service
import Synchronization

/// What a feed was delivered and its subscriber has not taken yet: at most as much as the broker hands out without an
/// acknowledgement.
final class FeedBuffer: Sendable {
    private enum Entry {
        case event(Overtime.Event, DeliveryTag)
        case gap
    }

    private struct State {
        weak var link: Link?
        var waiting: [Entry] = []
        /// The event behind a gap that was just told.
        var behindGap: Overtime.Event?
        /// Taken and to be acknowledged.
        var taken: [DeliveryTag] = []
        var subscriber: CheckedContinuation<Overtime.Notice?, Never>?
        var starter: CheckedContinuation<Result<Void, OvertimeError>, Never>?
        var sequences: Sequences
        /// Of the last event that came.
        var lastTime: Instant?
        var lastError: AMQPError?
        /// Events were heard once.
        var wasOpen = false
        /// The observer was told that they are not heard.
        var isLost = false
        var isClosed = false
        /// Why it can never begin.
        var failure: OvertimeError?
    }

    private let room: RoomID?
    private let plan: FeedPlan
    private let observer: @Sendable (Overtime.FeedState) -> Void
    private let state: Mutex<State>

    private static let acknowledgedAtOnce = 64

    init(room: RoomID?, plan: FeedPlan, observer: @escaping @Sendable (Overtime.FeedState) -> Void) {
        self.room = room
        self.plan = plan
        self.observer = observer
        state = Mutex(State(sequences: Sequences(seen: plan.seen)))
    }

    func attach(_ link: Link) { state.withLock { $0.link = link } }

    // MARK: The start

    func whenReady(_ continuation: CheckedContinuation<Result<Void, OvertimeError>, Never>) {
        let result = state.withLock { state -> Result<Void, OvertimeError>? in
            if let failure = state.failure { return .failure(failure) }
            if state.isClosed { return .failure(.closed) }
            if state.wasOpen { return .success(()) }
            if Task.isCancelled { return .failure(.cancelled) }
            state.starter = continuation
            return nil
        }
        if let result { continuation.resume(returning: result) }
    }

    func expire() {
        fail(
            state.withLock { state in
                guard let error = state.lastError else { return .unreachable("") }
                return error.kind == .notFound
                    ? .noWorker("there is no \(plan.sourceName)") : .unreachable("\(error)")
            })
    }

    /// Ends the wait for the start.
    func fail(_ error: OvertimeError) {
        let starter = state.withLock { state in
            if state.failure == nil { state.failure = error }
            return take(&state.starter)
        }
        starter?.resume(returning: .failure(error))
    }

    // MARK: The subscriber

    func next(_ continuation: CheckedContinuation<Overtime.Notice?, Never>) {
        enum Step {
            case give(Overtime.Notice?)
            case wait(displacing: CheckedContinuation<Overtime.Notice?, Never>?)
        }
        let step = state.withLock { state -> Step in
            if state.isClosed || Task.isCancelled { return .give(nil) }
            if let notice = next(&state) { return .give(notice) }
            defer { state.subscriber = continuation }
            return .wait(displacing: state.subscriber)
        }
        switch step {
        case .give(let notice): continuation.resume(returning: notice)
        // One task goes through a sequence; of two the later does.
        case .wait(let displaced): displaced?.resume(returning: nil)
        }
    }

    /// The subscriber's task was cancelled.
    func giveUp() {
        state.withLock { take(&$0.subscriber) }?.resume(returning: nil)
    }

    func close() {
        let (subscriber, starter) = state.withLock { state in
            state.isClosed = true
            return (take(&state.subscriber), take(&state.starter))
        }
        subscriber?.resume(returning: nil)
        starter?.resume(returning: .failure(.closed))
    }

    private func next(_ state: inout State) -> Overtime.Notice? {
        if let event = take(&state.behindGap) { return .event(event) }
        while !state.waiting.isEmpty {
            switch state.waiting.removeFirst() {
            case .gap: return .gap(.unknown)
            case .event(let event, let tag):
                taken(event, tag, &state)
                switch state.sequences.take(event.sequence, of: RoomID(event.room)) {
                case .copy: continue
                case .next:
                    if let earliest = plan.earliest, Instant(event.time) < earliest { continue }
                    return .event(event)
                case .gap(let last):
                    state.behindGap = event
                    return .gap(Overtime.Gap(room: event.room, after: last, before: event.sequence))
                }
            }
        }
        return nil
    }

    private func taken(_ event: Overtime.Event, _ tag: DeliveryTag, _ state: inout State) {
        if let position = event.position { plan.noteTaken(offset: position) }
        state.lastTime = Instant(event.time)
        state.taken.append(tag)
        guard state.waiting.isEmpty || state.taken.count >= Self.acknowledgedAtOnce else { return }
        state.link?.acknowledge(state.taken, on: 0)
        state.taken.removeAll(keepingCapacity: true)
    }

    private func take<Value>(_ value: inout Value?) -> Value? {
        defer { value = nil }
        return value
    }

    // MARK: What the link tells

    func handle(_ events: [LinkEvent]) {
        for event in events { handle(event) }
        let resume = state.withLock { state -> (@Sendable () -> Void)? in
            guard let subscriber = state.subscriber, let notice = next(&state) else { return nil }
            state.subscriber = nil
            return { subscriber.resume(returning: notice) }
        }
        resume?()
    }

    private func handle(_ event: LinkEvent) {
        switch event {
        case .channelOpened:
            opened()
        case .channelClosed(_, _, let error, _):
            if let error { closed(error) }
        case .disconnected(let error, _):
            let isNew = state.withLock { !$0.wasOpen }
            if isNew, error.isConfiguration { return fail(.brokerRefuses("\(error)")) }
            if isNew, error.kind == .resources { return fail(.resources("\(error)")) }
            plan.noteLoss()
            lost(error)
        case .delivery(_, let delivery):
            take(delivery)
        case .stopped:
            close()
        default: break
        }
    }

    private func opened() {
        plan.noteOpened()
        let isLive = plan.source == .live
        let (starter, isAgain) = state.withLock { state in
            defer {
                state.wasOpen = true
                state.isLost = false
            }
            return (take(&state.starter), state.wasOpen)
        }
        starter?.resume(returning: .success(()))
        observer(.connected(isAgain: isAgain))
        if isAgain, isLive { putGap() }
    }

    private func closed(_ error: AMQPError) {
        guard error.scope == .channel else { return }
        let (isNew, lastTime) = state.withLock { state in
            state.lastError = error
            drop(&state)
            return (!state.wasOpen, state.lastTime)
        }
        let isLog = plan.source == .log
        if isLog {
            // One that was there and is gone may be made anew at the worker's next start.
            plan.noteFailure(
                isForGood: error.kind == .accessRefused || (error.kind == .notFound && !isNew))
            let isAnother = error.kind == .consumerCancelled || error.kind == .notFound
            if isAnother, plan.forgetOffset(lastEvent: lastTime) { putGap() }
        }
        // A worker that has not been started yet declares what is missing, and without the log there are live events.
        if isNew, error.isConfiguration, !isLog, error.kind != .notFound {
            return fail(.brokerRefuses("\(error)"))
        }
        tell(error)
    }

    private func lost(_ error: AMQPError) {
        state.withLock { state in
            state.lastError = error
            drop(&state)
        }
        tell(error)
    }

    /// What has not been taken comes again from the log, behind the last that was. Without a log it is kept, as long as it is no
    /// more than is missing anyway.
    private func drop(_ state: inout State) {
        state.taken.removeAll(keepingCapacity: true)
        guard plan.source == .log || state.waiting.count > Int(FeedPlan.prefetch) else { return }
        state.waiting.removeAll { if case .event = $0 { true } else { false } }
    }

    /// Once, until events are heard again.
    private func tell(_ error: AMQPError) {
        let isNews = state.withLock { state in
            defer { state.isLost = true }
            return !state.isLost
        }
        if isNews { observer(.disconnected("\(error)")) }
    }

    private func take(_ delivery: Delivery) {
        let offset = delivery.properties.headers?["x-stream-offset"]?.integer
        if !plan.noteDelivered(offset: offset) { putGap() }
        guard case .bytes(let body) = delivery.body, let event = Overtime.Event(body: body, position: offset),
            room == nil || room == RoomID(event.room)
        else {
            return state.withLock { state in
                // Behind what is still waiting it is passed over once more, should that have to come again.
                if state.waiting.isEmpty, let offset { plan.noteTaken(offset: offset) }
                state.link?.acknowledge([delivery.tag], on: 0)
            }
        }
        state.withLock { $0.waiting.append(.event(event, delivery.tag)) }
    }

    private func putGap() { state.withLock { $0.waiting.append(.gap) } }
}
