/// The passing of time: what a tick does, and what every command does first.
///
/// Of windows that opened unannounced only the latest, still open, is announced, with the true time left;
/// after the end there is only the end. So a late caller never tells anybody something that is not so.
extension Room {
    /// Brings the room up to `now` and says what came due.
    package func advanced(to now: Instant) -> Transition {
        var change = Change(room: self, clock: now)
        change.advance()
        return change.finish()
    }
}

extension Change {
    /// Announces the open window if that has not been done for the present end, or ends the session.
    mutating func advance() {
        guard let session = liveSession, case .running(let run) = session.phase else { return }
        guard now < run.endsAt else { return endSession(cause: .elapsed, by: nil) }
        let policy = session.definition.policy
        guard let window = policy.openWindow(at: now, end: run.endsAt), window > run.announced else { return }
        var announced = run
        announced.announced = window
        updateSession { $0.phase = .running(announced) }
        let dueAt = max(policy.opening(ofWindow: window, end: run.endsAt), run.startedAt)
        let isExtendable =
            policy.longestGrant(extensions: run.extensions, total: run.endsAt - run.startedAt) != nil
        emit(
            .windowOpened(
                WindowNotice(
                    timeLeft: run.endsAt - now, window: window, isFinal: window == policy.windows.count,
                    isExtendable: isExtendable, extensions: run.extensions, endsAt: run.endsAt,
                    nextDueAt: policy.nextDue(after: now, end: run.endsAt), dueAt: dueAt, lateBy: now - dueAt)
            ))
    }
}
