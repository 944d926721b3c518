/// A session as answers show it, at one instant.
package struct Snapshot: Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
        case waiting, running, ended
    }

    package let number: Int64
    package let state: State
    package let startedAt: Instant?
    package let endsAt: Instant?
    /// Nil while waiting, zero once ended.
    package let timeLeft: TimeSpan?
    /// The open window, 1 … n.
    package let window: Int?
    /// When the next window opens; nil in the final one.
    package let nextWindowAt: Instant?
    package let extensions: Int64
    package let connected: Int64
    /// Set once ended, with `cause`.
    package let endedAt: Instant?
    package let cause: Ending.Cause?
}

extension Room {
    /// The latest session at `now`; nil before the first. Take it after the room was brought up to `now`.
    package func snapshot(at now: Instant) -> Snapshot? {
        guard let session else { return nil }
        switch session.phase {
        case .waiting:
            return Snapshot(
                number: session.number, state: .waiting, startedAt: nil, endsAt: nil, timeLeft: nil,
                window: nil,
                nextWindowAt: nil, extensions: 0, connected: session.connected, endedAt: nil, cause: nil)
        case .running(let run):
            let policy = session.definition.policy
            return Snapshot(
                number: session.number, state: .running, startedAt: run.startedAt, endsAt: run.endsAt,
                timeLeft: max(run.endsAt - now, .zero), window: policy.openWindow(at: now, end: run.endsAt),
                nextWindowAt: policy.nextOpening(after: now, end: run.endsAt), extensions: run.extensions,
                connected: session.connected, endedAt: nil, cause: nil)
        case .ended(let ending):
            return Snapshot(
                number: session.number, state: .ended, startedAt: ending.startedAt, endsAt: ending.endsAt,
                timeLeft: .zero, window: nil, nextWindowAt: nil, extensions: ending.extensions, connected: 0,
                endedAt: ending.endedAt, cause: ending.cause)
        }
    }
}
