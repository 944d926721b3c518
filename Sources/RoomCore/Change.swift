/// A room while it is being decided on: collects the events and keeps them numbered.
///
/// Time inside a session never runs back: where the clock reads earlier than the session's last change, that
/// change's instant is the now. A new session starts at the plain clock.
struct Change {
    private(set) var room: Room
    private(set) var events: [Event] = []
    private(set) var now: Instant
    private let clock: Instant
    private let original: Room
    /// Set by the one command that connects or disconnects somebody.
    var participant: ParticipantChange?

    init(room: Room, clock: Instant) {
        self.room = room
        self.original = room
        self.clock = clock
        if let session = room.session, session.isLive {
            now = max(clock, session.changedAt)
        } else {
            now = clock
        }
    }

    /// The waiting or running session.
    var liveSession: Session? { room.session.flatMap { $0.isLive ? $0 : nil } }

    mutating func emit(_ kind: Event.Kind) {
        room.sequence += 1
        let session = room.sessionNumber > 0 ? room.sessionNumber : nil
        events.append(Event(room: room.id, sequence: room.sequence, session: session, time: now, kind: kind))
    }

    /// Changes the session in place; its time has then reached `now`.
    mutating func updateSession(_ update: (inout Session) -> Void) {
        guard var session = room.session else { return }
        update(&session)
        session.changedAt = now
        room.session = session
    }

    mutating func define(_ definition: Definition) { room.definition = definition }

    /// Lets the room take joins until the end of its next session.
    mutating func openRoom() { room.isOpen = true }

    /// Makes the next session, waiting, at the plain clock.
    mutating func makeSession(definition: Definition) {
        now = clock
        room.sessionNumber += 1
        room.session = Session(
            number: room.sessionNumber, definition: definition, phase: .waiting, connected: 0, changedAt: now)
    }

    /// Starts the clock of the waiting session and says so; an open window is announced by `advance`.
    mutating func startSession() {
        guard let session = liveSession, case .waiting = session.phase else { return }
        let duration = session.definition.duration
        let end = now + duration
        updateSession { [now] in $0.phase = .running(Run(startedAt: now, endsAt: end)) }
        emit(
            .sessionStarted(
                startedAt: now, endsAt: end, duration: duration,
                nextDueAt: session.definition.policy.nextDue(after: now, end: end)))
    }

    /// Ends the live session, whatever it was doing, and disconnects everybody.
    mutating func endSession(cause: Ending.Cause, by user: UserID?) {
        guard let session = liveSession else { return }
        var startedAt: Instant?
        var endsAt: Instant?
        var extensions: Int64 = 0
        if case .running(let run) = session.phase {
            (startedAt, endsAt, extensions) = (run.startedAt, run.endsAt, run.extensions)
        }
        let lateBy = cause == .elapsed ? endsAt.map { now - $0 } ?? .zero : .zero
        let ending = Ending(
            startedAt: startedAt, endsAt: endsAt, endedAt: now, cause: cause, extensions: extensions)
        updateSession {
            $0.phase = .ended(ending)
            $0.connected = 0
        }
        room.isOpen = false
        emit(
            .sessionEnded(
                EndNotice(
                    cause: cause, by: user, startedAt: startedAt, endsAt: endsAt, endedAt: now,
                    lateBy: lateBy,
                    extensions: extensions, participants: session.connected)))
    }

    /// What has happened so far, checked: numbers without a gap, and an event only with a change.
    func finish() -> Transition {
        precondition(room.sequence == original.sequence + Int64(events.count), "event numbers have a gap")
        let isChange = room != original || participant != nil
        precondition(isChange || events.isEmpty, "an event without a change")
        return Transition(
            room: room, events: events, participant: participant, isChange: isChange, judgedAt: now)
    }
}
