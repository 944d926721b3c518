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
        at now: Instant, after last: OverdueRoom?, limit: Int
    ) throws(StoreError) -> [OverdueRoom] {
        try run(.overdue) { () throws(StoreError) in
            var due: [OverdueRoom] = []
            for stored in disk.rooms.values {
                guard let dueAt = stored.room.dueAt, dueAt <= now else { continue }
                due.append(OverdueRoom(dueAt: dueAt, room: stored.room.id))
            }
            due.sort { ($0.dueAt, $0.room) < ($1.dueAt, $1.room) }
            if let last { due.removeAll { ($0.dueAt, $0.room) <= (last.dueAt, last.room) } }
            return Array(due.prefix(limit))
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
