import Synchronization
import Testing

@testable import AMQP

/// What a link told, in order, and waiting for it with a limit.
final class EventLog: Sendable {
    struct TimedOut: Error, CustomStringConvertible {
        var description: String
    }

    private struct Waiter {
        var id: Int
        var resume: @Sendable () -> Void
    }

    private struct State {
        var events: [LinkEvent] = []
        var cursor = 0
        var waiters: [Waiter] = []
        var lastID = 0
    }

    private let state = Mutex(State())

    var observer: @Sendable ([LinkEvent]) -> Void {
        { [self] events in
            let waiters = state.withLock { state in
                state.events += events
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    var all: [LinkEvent] { state.withLock { $0.events } }

    /// The first event not passed yet that `match` makes something of; everything up to it is passed.
    func next<Value: Sendable>(
        _ what: String, limit: Duration = .seconds(15), _ match: @Sendable (LinkEvent) -> Value?
    ) async throws -> Value {
        let deadline = ContinuousClock.now + limit
        while true {
            let (found, seen) = state.withLock { state -> (Value?, Int) in
                while state.cursor < state.events.count {
                    defer { state.cursor += 1 }
                    if let value = match(state.events[state.cursor]) { return (value, 0) }
                }
                return (nil, state.events.count)
            }
            if let found { return found }
            guard ContinuousClock.now < deadline else {
                throw TimedOut(description: "waited \(limit) for \(what); heard \(all.suffix(12))")
            }
            await more(than: seen, until: deadline)
        }
    }

    private func more(than seen: Int, until deadline: ContinuousClock.Instant) async {
        let timer = Mutex<Task<Void, Never>?>(nil)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let id = state.withLock { state -> Int? in
                guard state.events.count == seen else { return nil }
                state.lastID += 1
                state.waiters.append(Waiter(id: state.lastID) { continuation.resume() })
                return state.lastID
            }
            guard let id else {
                continuation.resume()
                return
            }
            let task = Task { [self] in
                try? await Task.sleep(until: deadline)
                let waiter = state.withLock { state -> Waiter? in
                    guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
                    return state.waiters.remove(at: index)
                }
                waiter?.resume()
            }
            timer.withLock { $0 = task }
        }
        timer.withLock { $0 }?.cancel()
    }
}

extension EventLog {
    func opened(_ channel: Int) async throws -> UInt64 {
        try await next("channel \(channel) to open") { event in
            if case .channelOpened(channel, let generation) = event { return generation }
            return nil
        }
    }

    /// The end of a channel: its error and its publications without an outcome.
    func closed(_ channel: Int) async throws -> (error: AMQPError?, unknown: [UInt64]) {
        try await next("channel \(channel) to close") { event in
            if case .channelClosed(channel, _, let error, let unknown) = event { return (error, unknown) }
            return nil
        }
    }

    func delivery(_ channel: Int) async throws -> Delivery {
        try await next("a delivery on channel \(channel)") { event in
            if case .delivery(channel, let delivery) = event { return delivery }
            return nil
        }
    }

    func disconnected() async throws -> AMQPError {
        try await next("a lost connection") { event in
            if case .disconnected(let error, _) = event { return error }
            return nil
        }
    }

    /// Outcomes until so many publications have one.
    func outcomes(_ count: Int, on channel: Int) async throws -> (
        confirmed: [UInt64], returned: [UInt64], refused: [UInt64]
    ) {
        var confirmed: [UInt64] = []
        var returned: [UInt64] = []
        var refused: [UInt64] = []
        while confirmed.count + returned.count + refused.count < count {
            let event = try await next("\(count) outcomes") { event -> LinkEvent? in
                switch event {
                case .confirmed(channel, _), .returned(channel, _, _, _), .refused(channel, _): event
                default: nil
                }
            }
            switch event {
            case .confirmed(_, let ids): confirmed += ids
            case .refused(_, let ids): refused += ids
            case .returned(_, let id, _, _): returned.append(id)
            default: break
            }
        }
        return (confirmed, returned, refused)
    }
}
