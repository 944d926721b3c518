/// Something that happened in a room, numbered within it.
package struct Event: Hashable, Sendable {
    package let room: RoomID
    /// 1, 2, … over all of the room's sessions, without a gap.
    package let sequence: Int64
    /// The session it belongs to; nil for a `room.opened` before the first.
    package let session: Int64?
    package let time: Instant
    package let kind: Kind

    package init(room: RoomID, sequence: Int64, session: Int64?, time: Instant, kind: Kind) {
        self.room = room
        self.sequence = sequence
        self.session = session
        self.time = time
        self.kind = kind
    }

    package enum Kind: Hashable, Sendable {
        case roomOpened(Definition)
        /// `nextDueAt`: the first window's opening, or the end.
        case sessionStarted(startedAt: Instant, endsAt: Instant, duration: TimeSpan, nextDueAt: Instant)
        case participantJoined(user: UserID, role: Role, connected: Int64)
        case participantLeft(user: UserID, role: Role, connected: Int64)
        case participantRoleChanged(user: UserID, role: Role, connected: Int64)
        case windowOpened(WindowNotice)
        case sessionExtended(ExtensionNotice)
        /// For the moderator alone.
        case destroyAcknowledged(by: UserID)
        case sessionEnded(EndNotice)
    }
}

/// `session.window.opened`.
package struct WindowNotice: Hashable, Sendable {
    /// Left at the moment of firing.
    package let timeLeft: TimeSpan
    /// 1 … n.
    package let window: Int
    package let isFinal: Bool
    /// False when a limit forbids an extension.
    package let isExtendable: Bool
    package let extensions: Int64
    package let endsAt: Instant
    /// The next window's opening, or the end.
    package let nextDueAt: Instant
    /// The later of the window's opening and the session's start.
    package let dueAt: Instant
    /// How long after `dueAt` it was announced; never negative.
    package let lateBy: TimeSpan

    package init(
        timeLeft: TimeSpan, window: Int, isFinal: Bool, isExtendable: Bool, extensions: Int64,
        endsAt: Instant,
        nextDueAt: Instant, dueAt: Instant, lateBy: TimeSpan
    ) {
        self.timeLeft = timeLeft
        self.window = window
        self.isFinal = isFinal
        self.isExtendable = isExtendable
        self.extensions = extensions
        self.endsAt = endsAt
        self.nextDueAt = nextDueAt
        self.dueAt = dueAt
        self.lateBy = lateBy
    }
}

/// `session.extended`.
package struct ExtensionNotice: Hashable, Sendable {
    package let granted: TimeSpan
    package let by: Extender
    package let previousEndsAt: Instant
    package let endsAt: Instant
    package let nextDueAt: Instant
    package let extensions: Int64

    package init(
        granted: TimeSpan, by: Extender, previousEndsAt: Instant, endsAt: Instant, nextDueAt: Instant,
        extensions: Int64
    ) {
        self.granted = granted
        self.by = by
        self.previousEndsAt = previousEndsAt
        self.endsAt = endsAt
        self.nextDueAt = nextDueAt
        self.extensions = extensions
    }
}

/// `session.ended`.
package struct EndNotice: Hashable, Sendable {
    package let cause: Ending.Cause
    /// The moderator who ended it; nil by time or by an operator.
    package let by: UserID?
    /// Nil where the session never left `waiting`; so is `endsAt`.
    package let startedAt: Instant?
    package let endsAt: Instant?
    package let endedAt: Instant
    /// 0 if destroyed.
    package let lateBy: TimeSpan
    package let extensions: Int64
    /// How many users were disconnected by it.
    package let participants: Int64

    package init(
        cause: Ending.Cause, by: UserID?, startedAt: Instant?, endsAt: Instant?, endedAt: Instant,
        lateBy: TimeSpan, extensions: Int64, participants: Int64
    ) {
        self.cause = cause
        self.by = by
        self.startedAt = startedAt
        self.endsAt = endsAt
        self.endedAt = endedAt
        self.lateBy = lateBy
        self.extensions = extensions
        self.participants = participants
    }
}
