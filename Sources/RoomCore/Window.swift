/// The windows of a session, as a function of its end and the time alone (contract, section 2, Windows).
///
/// Window k of n is the time from `end − windows[k]` until `end − windows[k+1]`, the last one until the
/// end. Openings belong to a window, ends do not.
extension Policy {
    /// When window `number` (1 … n) opens.
    package func opening(ofWindow number: Int, end: Instant) -> Instant { end - windows[number - 1] }

    /// The window that is open at `now`; nil before the first and from the end on.
    package func openWindow(at now: Instant, end: Instant) -> Int? {
        guard now < end else { return nil }
        return windows.lastIndex { end - $0 <= now }.map { $0 + 1 }
    }

    /// When the next window after `now` opens; nil in the final one and after the end.
    package func nextOpening(after now: Instant, end: Instant) -> Instant? {
        windows.first { end - $0 > now }.map { end - $0 }
    }

    /// The next window's opening, or the end where none is left.
    package func nextDue(after now: Instant, end: Instant) -> Instant {
        nextOpening(after: now, end: end) ?? end
    }
}

extension Room {
    /// The instant at which this room next has something to say: the first unannounced window's opening, or
    /// the end. In the past where that is overdue; nil where no session runs.
    package var dueAt: Instant? {
        guard let session, case .running(let run) = session.phase else { return nil }
        let policy = session.definition.policy
        return run.announced < policy.windows.count
            ? policy.opening(ofWindow: run.announced + 1, end: run.endsAt) : run.endsAt
    }
}
