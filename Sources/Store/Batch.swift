package import RoomCore

/// A user in a room's latest session.
package struct ParticipantKey: Hashable, Sendable {
    package let room: RoomID
    package let user: UserID

    package init(room: RoomID, user: UserID) {
        self.room = room
        self.user = user
    }
}

/// What a repeated command is recognised by.
package struct CommandKey: Hashable, Sendable {
    package let room: RoomID
    package let id: CommandID

    package init(room: RoomID, id: CommandID) {
        self.room = room
        self.id = id
    }
}

/// What a batch needs to know before it can be decided. Copies in the lists do no harm.
package struct BatchRequest: Sendable {
    package var rooms: [RoomID]
    /// Their rooms need not be named in `rooms` too; they come along.
    package var participants: [ParticipantKey]
    package var keys: [CommandKey]

    package init(rooms: [RoomID] = [], participants: [ParticipantKey] = [], keys: [CommandKey] = []) {
        self.rooms = rooms
        self.participants = participants
        self.keys = keys
    }
}

/// A room with the version that a commit will compare; 0 where the store has no row of it.
package struct StoredRoom: Hashable, Sendable {
    package let room: Room
    package let version: Int64

    package init(room: Room, version: Int64) {
        self.room = room
        self.version = version
    }
}

/// The stored answer to a command.
package struct StoredAnswer: Hashable, Sendable {
    /// The command as decoded, in a form whose equality is the command's.
    package let canonical: [UInt8]
    package let reply: [UInt8]
    /// The last outbox position that the answer's commit wrote for its room; nil where it wrote none.
    /// Once nothing of the room is unpublished up to there, a repeat may be acknowledged.
    package let outboxPositionUpTo: Int64?

    package init(canonical: [UInt8], reply: [UInt8], outboxPositionUpTo: Int64?) {
        self.canonical = canonical
        self.reply = reply
        self.outboxPositionUpTo = outboxPositionUpTo
    }
}

/// What the store knew when it was asked.
package struct BatchState: Sendable {
    /// One for every room asked for, known or not.
    package var rooms: [RoomID: StoredRoom]
    /// Only those connected to their room's live session.
    package var participants: [ParticipantKey: Participant]
    /// Only the keys that were used before.
    package var answers: [CommandKey: StoredAnswer]
    /// The store's clock, where it is the one that counts (`SharedStore`); nil where the worker's is.
    package var now: Instant?
    /// Events of these rooms that other runs committed and nobody has marked as published, in order of position. To be
    /// published before anything newer of their rooms.
    package var unsent: [OutboxMessage]

    package init(
        rooms: [RoomID: StoredRoom] = [:], participants: [ParticipantKey: Participant] = [:],
        answers: [CommandKey: StoredAnswer] = [:], now: Instant? = nil, unsent: [OutboxMessage] = []
    ) {
        self.rooms = rooms
        self.participants = participants
        self.answers = answers
        self.now = now
        self.unsent = unsent
    }
}

/// A room that a batch decided on. Name each room once, in its final state.
package struct RoomWrite: Sendable {
    package let room: Room
    package let expectedVersion: Int64
    /// False where it was only read: its version is compared all the same and stays as it is.
    package let isChanged: Bool

    package init(room: Room, expectedVersion: Int64, isChanged: Bool) {
        self.room = room
        self.expectedVersion = expectedVersion
        self.isChanged = isChanged
    }
}

/// What a command did to one connection.
package struct ParticipantWrite: Sendable {
    package let room: RoomID
    /// The session it belongs to; of another than the room's live one it has no effect.
    package let session: Int64
    package let change: ParticipantChange

    package init(room: RoomID, session: Int64, change: ParticipantChange) {
        self.room = room
        self.session = session
        self.change = change
    }
}

/// An answer to keep, refusals included.
package struct AnswerWrite: Sendable {
    package let key: CommandKey
    package let canonical: [UInt8]
    package let reply: [UInt8]
    /// The room's session number when it was decided: the answer is kept at least until that is over.
    package let session: Int64
    package let at: Instant

    package init(key: CommandKey, canonical: [UInt8], reply: [UInt8], session: Int64, at: Instant) {
        self.key = key
        self.canonical = canonical
        self.reply = reply
        self.session = session
        self.at = at
    }
}

/// Everything that a batch must make durable together.
package struct BatchCommit: Sendable {
    package var rooms: [RoomWrite]
    /// Applied in their order.
    package var participants: [ParticipantWrite]
    package var answers: [AnswerWrite]
    package var outbox: [OutboxDraft]
    /// Positions published meanwhile, forgotten in the same transaction.
    package var published: [Int64]
    package var clearedAttempts: [AttemptKey]

    package init(
        rooms: [RoomWrite] = [], participants: [ParticipantWrite] = [], answers: [AnswerWrite] = [],
        outbox: [OutboxDraft] = [], published: [Int64] = [], clearedAttempts: [AttemptKey] = []
    ) {
        self.rooms = rooms
        self.participants = participants
        self.answers = answers
        self.outbox = outbox
        self.published = published
        self.clearedAttempts = clearedAttempts
    }
}
