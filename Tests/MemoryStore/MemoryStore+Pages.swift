package import RoomCore
package import Store

extension MemoryStore {
    package func liveRooms(after last: RoomID?, limit: Int) throws(StoreError) -> [Room] {
        try run(.liveRooms) { () throws(StoreError) in
            let live = disk.rooms.values.map(\.room).filter { $0.session?.isLive == true }
            let later = live.filter { room in last.map { room.id > $0 } ?? true }
            return Array(later.sorted { $0.id < $1.id }.prefix(limit))
        }
    }

    package func participants(
        of room: RoomID, session: Int64, after last: UserID?, limit: Int
    ) throws(StoreError) -> [Participant] {
        try run(.participants) { () throws(StoreError) in
            guard let live = disk.rooms[room]?.room.session, live.isLive, live.number == session else {
                return []
            }
            let later = disk.connected(to: room, session: session).filter { participant in
                last.map { participant.user > $0 } ?? true
            }
            return Array(later.prefix(limit))
        }
    }

    package func overdue(
        at now: Instant, after last: RoomID?, limit: Int
    ) throws(StoreError) -> OverduePage {
        try run(.overdue) { () throws(StoreError) in
            let later = disk.rooms.values.map(\.room).filter { room in last.map { room.id > $0 } ?? true }
            let seen = later.sorted { $0.id < $1.id }.prefix(limit)
            return OverduePage(
                rooms: seen.filter { room in room.dueAt.map { $0 <= now } ?? false }.map(\.id),
                next: seen.count == limit ? seen.last?.id : nil)
        }
    }

    package func statistics() throws(StoreError) -> StoreStatistics {
        try run(.statistics) { () throws(StoreError) in
            StoreStatistics(
                schemaVersion: 1,
                liveRooms: disk.rooms.values.filter { $0.room.session?.isLive == true }.count,
                outboxDepth: disk.outbox.count,
                oldestOutboxAt: disk.outbox.first.map { Instant(milliseconds: $0.draft.timestamp * 1_000) },
                databaseBytes: 1, journalBytes: 0)
        }
    }

    package func check() throws(StoreError) {
        try run(.check) { () throws(StoreError) in }
    }
}
