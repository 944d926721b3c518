/// What a command or the passing of time did to a room: everything that must become durable together.
package struct Transition: Hashable, Sendable {
    /// The room afterwards.
    package let room: Room
    /// In order; their sequence numbers follow the room's previous one without a gap.
    package let events: [Event]
    /// What happened to the acting user's connection; nil for nothing.
    package let participant: ParticipantChange?
    /// False where the room is exactly as before: a refusal, a repeat or an idle tick.
    package let isChange: Bool
    /// The now at which it was judged, and of all figures in the answer.
    package let judgedAt: Instant

    package init(
        room: Room, events: [Event], participant: ParticipantChange?, isChange: Bool, judgedAt: Instant
    ) {
        self.room = room
        self.events = events
        self.participant = participant
        self.isChange = isChange
        self.judgedAt = judgedAt
    }
}

/// The one participant row that a command may change. The end of a session disconnects everybody by
/// its number alone: rows of older sessions do not count.
package enum ParticipantChange: Hashable, Sendable {
    /// New or changed, in the room's latest session.
    case connected(Participant)
    case left(UserID)
}

/// A command's answer.
package enum Outcome: Hashable, Sendable {
    /// `open`, `leave`, `destroy`, `status`.
    case done
    case joined(role: Role)
    case extended(by: TimeSpan, endsAt: Instant, extensions: Int64)
    case refused(Refusal)
}

/// A command decided.
package struct Decision: Hashable, Sendable {
    package let transition: Transition
    package let outcome: Outcome

    package init(transition: Transition, outcome: Outcome) {
        self.transition = transition
        self.outcome = outcome
    }
}
