package import RoomCore

/// How long things are kept.
package struct Retention: Hashable, Sendable {
    package let now: Instant
    /// Answers are kept for this long, and until the session they were given in is over.
    package let idsFor: TimeSpan
    /// Rooms that are not open keep their definition and last session for this long after its end.
    package let roomsFor: TimeSpan

    package init(now: Instant, idsFor: TimeSpan, roomsFor: TimeSpan) {
        self.now = now
        self.idsFor = idsFor
        self.roomsFor = roomsFor
    }
}

/// What one call of `prune` removed.
package struct PruneCount: Hashable, Sendable {
    package var answers = 0
    /// Rows of users who were connected when their session ended.
    package var participants = 0
    package var rooms = 0
    /// Crashed runs whose attempt marks are too old to count.
    package var runs = 0
    /// True where the limit ended the call: there may be more to remove.
    package var isUnfinished = false

    package init(
        answers: Int = 0, participants: Int = 0, rooms: Int = 0, runs: Int = 0, isUnfinished: Bool = false
    ) {
        self.answers = answers
        self.participants = participants
        self.rooms = rooms
        self.runs = runs
        self.isUnfinished = isUnfinished
    }
}

/// Some of the rooms whose next due instant has passed.
package struct OverduePage: Hashable, Sendable {
    /// In byte order of their ids.
    package var rooms: [RoomID]
    /// The last room that was looked at, behind which the next page begins; nil where there are no more.
    package var next: RoomID?

    package init(rooms: [RoomID] = [], next: RoomID? = nil) {
        self.rooms = rooms
        self.next = next
    }
}
