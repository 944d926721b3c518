/// A long-lived place for sessions, as the store keeps it. Who is connected is kept beside it, one row a
/// person, so that no command's cost grows with the number of people in the room.
package struct Room: Hashable, Sendable {
    package let id: RoomID
    /// The definition set last, which the next session will take; nil where the room was never opened
    /// (or was pruned, which keeps `sequence` and `sessionNumber`).
    package var definition: Definition?
    /// The number of the last event; 0 before the first. Never restarts.
    package var sequence: Int64
    /// The number of the latest session; 0 before the first. Never restarts.
    package var sessionNumber: Int64
    /// True from an `open` until the end of the next session: the room takes joins.
    package var isOpen: Bool
    /// The latest session, also when it has ended; nil before the first and after pruning.
    package var session: Session?

    package init(
        id: RoomID, definition: Definition? = nil, sequence: Int64 = 0, sessionNumber: Int64 = 0,
        isOpen: Bool = false, session: Session? = nil
    ) {
        self.id = id
        self.definition = definition
        self.sequence = sequence
        self.sessionNumber = sessionNumber
        self.isOpen = isOpen
        self.session = session
    }
}

/// What an `open` sets: a whole definition, every omitted field at its default.
package struct Definition: Hashable, Sendable, Codable {
    package let duration: TimeSpan
    /// Who is a moderator; nil where the room has no such list and the role asked for counts.
    package let moderators: [UserID]?
    package let policy: Policy

    package init(duration: TimeSpan, moderators: [UserID]?, policy: Policy) {
        self.duration = duration
        self.moderators = moderators
        self.policy = policy
    }
}

/// One run of a room, from the first join (or what `clock` says) to its end.
package struct Session: Hashable, Sendable {
    package let number: Int64
    /// The definition in force: that of the room when the session was made. An `open` during the session
    /// changes only the room's.
    package let definition: Definition
    package var phase: Phase
    /// How many users are connected; 0 once ended.
    package var connected: Int64
    /// The instant of the last change: the session's time never runs back behind it.
    package var changedAt: Instant

    package init(
        number: Int64, definition: Definition, phase: Phase, connected: Int64, changedAt: Instant
    ) {
        self.number = number
        self.definition = definition
        self.phase = phase
        self.connected = connected
        self.changedAt = changedAt
    }

    package enum Phase: Hashable, Sendable {
        /// Waits for its first moderator: no start, no end, no windows.
        case waiting
        case running(Run)
        case ended(Ending)
    }

    /// Waiting or running.
    package var isLive: Bool {
        if case .ended = phase { false } else { true }
    }
}

/// The clock of a running session.
package struct Run: Hashable, Sendable {
    package let startedAt: Instant
    package var endsAt: Instant
    /// How many extensions were granted.
    package var extensions: Int64
    /// The last window announced for the present end, 1 … n; 0 for none.
    package var announced: Int
    /// Who extended last; nil before the first extension.
    package var extendedBy: Extender?

    package init(
        startedAt: Instant, endsAt: Instant, extensions: Int64 = 0, announced: Int = 0,
        extendedBy: Extender? = nil
    ) {
        self.startedAt = startedAt
        self.endsAt = endsAt
        self.extensions = extensions
        self.announced = announced
        self.extendedBy = extendedBy
    }
}

/// Who granted an extension.
package enum Extender: Hashable, Sendable {
    case user(UserID)
    /// A backend, named by the `user_id` that the broker validated.
    case `operator`(String)
}

/// How a session ended.
package struct Ending: Hashable, Sendable {
    package enum Cause: String, Hashable, Sendable, Codable {
        case elapsed
        case destroyed
    }

    /// Nil where the session never left `waiting`.
    package let startedAt: Instant?
    /// The planned end; nil where the session never left `waiting`.
    package let endsAt: Instant?
    package let endedAt: Instant
    package let cause: Cause
    package let extensions: Int64

    package init(startedAt: Instant?, endsAt: Instant?, endedAt: Instant, cause: Cause, extensions: Int64) {
        self.startedAt = startedAt
        self.endsAt = endsAt
        self.endedAt = endedAt
        self.cause = cause
        self.extensions = extensions
    }
}

package enum Role: String, Hashable, Sendable, Codable, CaseIterable {
    case moderator
    case participant
    case viewer
}

/// A user connected to a session.
package struct Participant: Hashable, Sendable {
    package let user: UserID
    package var role: Role
    package let joinedAt: Instant

    package init(user: UserID, role: Role, joinedAt: Instant) {
        self.user = user
        self.role = role
        self.joinedAt = joinedAt
    }
}
