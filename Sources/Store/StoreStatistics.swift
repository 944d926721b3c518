package import RoomCore

/// What metrics and `overtime check` show of a store.
package struct StoreStatistics: Hashable, Sendable {
    package let schemaVersion: Int
    /// Rooms with a waiting or running session.
    package let liveRooms: Int
    /// Messages that are not published yet.
    package let outboxDepth: Int
    /// The time of the oldest of them, in whole seconds.
    package let oldestOutboxAt: Instant?
    /// Size of the database itself, and of what waits beside it to be moved into it.
    package let databaseBytes: Int64
    package let journalBytes: Int64

    package init(
        schemaVersion: Int, liveRooms: Int, outboxDepth: Int, oldestOutboxAt: Instant?, databaseBytes: Int64,
        journalBytes: Int64
    ) {
        self.schemaVersion = schemaVersion
        self.liveRooms = liveRooms
        self.outboxDepth = outboxDepth
        self.oldestOutboxAt = oldestOutboxAt
        self.databaseBytes = databaseBytes
        self.journalBytes = journalBytes
    }
}
