import RoomCore

/// A room under test with what the store would keep beside it, moved by commands and ticks.
struct Scene {
    var room: Room
    var settings: RoomSettings
    /// Who is connected; rows of older sessions are left behind, as in the store.
    private(set) var people: [UserID: Participant] = [:]
    /// Every event so far.
    private(set) var events: [Event] = []

    init(_ room: Room = Room(id: "demo"), settings: RoomSettings = RoomSettings()) {
        self.room = room
        self.settings = settings
    }

    @discardableResult
    mutating func perform(_ action: Command.Action, by actor: Actor = .nobody, at now: Instant) -> Step {
        var user: UserID?
        if case .user(let name) = actor { user = name }
        let decision = room.decide(
            Command(room: room.id, user: user, action: action), by: actor,
            participant: user.flatMap { people[$0] }, at: now, settings: settings)
        return keep(decision.transition, outcome: decision.outcome)
    }

    @discardableResult
    mutating func tick(at now: Instant) -> Step { keep(room.advanced(to: now), outcome: nil) }

    private mutating func keep(_ transition: Transition, outcome: Outcome?) -> Step {
        let before = room
        room = transition.room
        if room.sessionNumber != before.sessionNumber || room.session?.isLive != true { people = [:] }
        switch transition.participant {
        case .connected(let participant): people[participant.user] = participant
        case .left(let user): people[user] = nil
        case nil: break
        }
        events += transition.events
        return Step(before: before, transition: transition, outcome: outcome)
    }

    /// The latest session as it was shown at an instant.
    func snapshot(at now: Instant) -> Snapshot? { room.snapshot(at: now) }
}

/// What one command or tick did.
struct Step {
    let before: Room
    let transition: Transition
    /// Nil for a tick.
    let outcome: Outcome?

    var kinds: [Event.Kind] { transition.events.map { $0.kind } }
    var judgedAt: Instant { transition.judgedAt }

    var refusal: Refusal? {
        if case .refused(let refusal) = outcome { refusal } else { nil }
    }

    var reason: Refusal.Reason? { refusal?.reason }
}
