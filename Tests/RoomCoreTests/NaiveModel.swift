@testable import RoomCore

/// What the model says a command is answered with; messages are left to the rules.
enum NaiveOutcome: Equatable {
    case done
    case joined(String)
    case extended(by: Int64, endsAt: Int64, extensions: Int64)
    case refused(String, opensAt: Int64?, extendedBy: Extender?)
}

/// The latest session, as the model keeps it.
struct NaiveSession {
    var number: Int64
    var rules: NaiveDefinition
    var startedAt: Int64?
    var endsAt: Int64?
    var people: [String: (role: String, joinedAt: Int64)] = [:]
    var grants: [Extender] = []
    var over: (at: Int64, cause: String)?

    /// The interval that holds an instant.
    func window(at now: Int64) -> (number: Int, from: Int64, to: Int64)? {
        guard let endsAt else { return nil }
        return rules.intervals(before: endsAt).first { $0.from <= now && now < $0.to }
    }

    /// The first opening after an instant.
    func opening(after now: Int64) -> Int64? {
        guard let endsAt else { return nil }
        return rules.intervals(before: endsAt).first { $0.from > now }?.from
    }

    /// What of a wish the limits leave; nil where they forbid an extension.
    func grant(_ wish: Int64) -> Int64? {
        if let most = rules.maxExtensions, Int64(grants.count) >= most { return nil }
        guard let total = rules.maxTotal else { return wish }
        let planned = startedAt.flatMap { start in endsAt.map { $0 - start } } ?? rules.duration
        let left = total - planned
        if left < rules.least { return nil }
        return left < wish ? left : wish
    }
}

/// A deliberately naive reading of the contract: it keeps all events for ever and looks into them for
/// everything that the rules keep as state (which windows were announced, the last change, whether the room
/// was opened since its last end).
struct NaiveModel {
    let id: RoomID
    var definition: NaiveDefinition?
    var session: NaiveSession?
    var events: [Event] = []
    /// The now at which the last command was judged.
    var now: Int64 = 0
    /// The row of the acting user that the last command changed.
    var row: ParticipantChange?

    init(id: RoomID) { self.id = id }

    // MARK: Read from the history

    /// The session's last change. A definition set during a session counts: its `room.opened` carries the
    /// session's number, and the session's events stay in the order of their times.
    var lastChange: Int64? {
        guard let session, let last = events.last, last.session == session.number else { return nil }
        return last.time.milliseconds
    }

    /// True after an end, until the room is opened again.
    var isClosed: Bool {
        guard session?.over != nil else { return false }
        for event in events.reversed() {
            switch event.kind {
            case .roomOpened: return false
            case .sessionEnded: return true
            default: continue
            }
        }
        return false
    }

    /// Whether the key (session, extensions, window) was announced.
    func wasAnnounced(_ window: Int) -> Bool {
        guard let session else { return false }
        for event in events.reversed() {
            guard event.session == session.number else { return false }
            if case .windowOpened(let notice) = event.kind, notice.window == window,
                notice.extensions == Int64(session.grants.count)
            {
                return true
            }
        }
        return false
    }

    /// The next instant at which the room has something to say.
    var dueAt: Int64? {
        guard let session, session.over == nil, let endsAt = session.endsAt else { return nil }
        let after = lastChange ?? now
        return session.opening(after: after) ?? endsAt
    }

    var snapshot: Snapshot? {
        guard let session else { return nil }
        let extensions = Int64(session.grants.count)
        let startedAt = session.startedAt.map { Instant(milliseconds: $0) }
        let endsAt = session.endsAt.map { Instant(milliseconds: $0) }
        if let over = session.over {
            return Snapshot(
                number: session.number, state: .ended, startedAt: startedAt, endsAt: endsAt, timeLeft: .zero,
                window: nil, nextWindowAt: nil, extensions: extensions, connected: 0,
                endedAt: Instant(milliseconds: over.at), cause: Ending.Cause(rawValue: over.cause))
        }
        return Snapshot(
            number: session.number, state: session.startedAt == nil ? .waiting : .running,
            startedAt: startedAt, endsAt: endsAt,
            timeLeft: session.endsAt.map { TimeSpan(milliseconds: $0 - now) },
            window: session.window(at: now)?.number,
            nextWindowAt: session.opening(after: now).map { Instant(milliseconds: $0) },
            extensions: extensions, connected: Int64(session.people.count), endedAt: nil, cause: nil)
    }

    // MARK: What happens

    mutating func emit(_ kind: Event.Kind) {
        events.append(
            Event(
                room: id, sequence: Int64(events.count) + 1, session: session?.number,
                time: Instant(milliseconds: now), kind: kind))
    }

    /// Reads the clock, which never runs back while a session waits or runs, and says what came due.
    ///
    /// After an end there is no session whose time could run back, so the plain clock counts again: the
    /// contract leaves open whether it should stay behind the end until then.
    mutating func bringUpToDate(to clock: Int64) {
        row = nil
        now = session?.over == nil ? max(clock, lastChange ?? clock) : clock
        guard let session, session.over == nil, let endsAt = session.endsAt else { return }
        if now >= endsAt {
            end("elapsed", by: nil, lateBy: now - endsAt)
        } else {
            announce()
        }
    }

    mutating func announce() {
        guard let session, let startedAt = session.startedAt, let endsAt = session.endsAt,
            let window = session.window(at: now), !wasAnnounced(window.number)
        else { return }
        let due = max(window.from, startedAt)
        emit(
            .windowOpened(
                WindowNotice(
                    timeLeft: TimeSpan(milliseconds: endsAt - now), window: window.number,
                    isFinal: window.to == endsAt, isExtendable: session.grant(session.rules.least) != nil,
                    extensions: Int64(session.grants.count), endsAt: Instant(milliseconds: endsAt),
                    nextDueAt: Instant(milliseconds: window.to), dueAt: Instant(milliseconds: due),
                    lateBy: TimeSpan(milliseconds: now - due))))
    }

    mutating func end(_ cause: String, by user: String?, lateBy: Int64) {
        guard let ending = session, let cause = Ending.Cause(rawValue: cause) else { return }
        emit(
            .sessionEnded(
                EndNotice(
                    cause: cause, by: user.map { UserID($0) },
                    startedAt: ending.startedAt.map { Instant(milliseconds: $0) },
                    endsAt: ending.endsAt.map { Instant(milliseconds: $0) },
                    endedAt: Instant(milliseconds: now), lateBy: TimeSpan(milliseconds: lateBy),
                    extensions: Int64(ending.grants.count), participants: Int64(ending.people.count))))
        session?.over = (now, cause.rawValue)
        session?.people = [:]
    }

    /// Sets a definition and says so.
    mutating func define(_ new: NaiveDefinition) {
        definition = new
        if let value = new.asDefinition { emit(.roomOpened(value)) }
    }

    mutating func makeSession(of rules: NaiveDefinition) {
        session = NaiveSession(number: (session?.number ?? 0) + 1, rules: rules)
    }

    mutating func startClock() {
        guard var starting = session else { return }
        let endsAt = now + starting.rules.duration
        starting.startedAt = now
        starting.endsAt = endsAt
        session = starting
        emit(
            .sessionStarted(
                startedAt: Instant(milliseconds: now), endsAt: Instant(milliseconds: endsAt),
                duration: TimeSpan(milliseconds: starting.rules.duration),
                nextDueAt: Instant(milliseconds: starting.opening(after: now) ?? endsAt)))
    }
}
