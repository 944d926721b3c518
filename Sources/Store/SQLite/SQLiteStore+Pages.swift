package import RoomCore

/// Pages for queries and for the start. A cursor names the last row of the page before; the next one begins
/// at its successor in byte order, which is the same text with a zero byte behind it.
extension SQLiteStore {
    package func liveRooms(after last: RoomID?, limit: Int) throws(StoreError) -> [Room] {
        try reading { link throws(StoreError) in
            let row = link.statements.livePage
            defer { row.reset() }
            row.bind(1, Self.successor(of: last?.text))
            var rooms: [Room] = []
            while rooms.count < limit, try row.step() {
                guard let text = row.text(0) else { throw .corrupt("a room's id is not text") }
                // One unreadable room must not hide all the others from the scheduler.
                do throws(StoreError) {
                    rooms.append(
                        try RoomRow.read(row, id: RoomID(text), definitions: link.definitions).room)
                } catch {
                    guard error.isBatchFault else { throw error }
                    onDefect(error)
                }
            }
            return rooms
        }
    }

    package func participants(
        of room: RoomID, session: Int64, after last: UserID?, limit: Int
    ) throws(StoreError) -> [Participant] {
        try reading { link throws(StoreError) in
            let row = link.statements.participantPage
            defer { row.reset() }
            row.bind(1, room)
            row.bind(2, session)
            row.bind(3, Self.successor(of: last?.text))
            row.bind(4, Int64(max(limit, 0)))
            var participants: [Participant] = []
            while try row.step() {
                guard let user = row.text(0) else { throw .corruptRoom(room, "a user's id is not text") }
                participants.append(
                    try ParticipantFields.participant(
                        UserID(user), role: row.integer(1), joinedAt: row.integer(2), of: room))
            }
            return participants
        }
    }

    package func overdue(
        at now: Instant, after last: RoomID?, limit: Int
    ) throws(StoreError) -> OverduePage {
        try reading { link throws(StoreError) in
            if last == nil { livesFew = false }
            let row = livesFew ? link.statements.overdueLivePage : link.statements.overduePage
            defer { row.reset() }
            row.bind(1, Self.successor(of: last?.text))
            row.bind(2, Int64(max(limit, 0)))
            var page = OverduePage()
            var (seen, live) = (0, 0)
            while try row.step() {
                seen += 1
                live += Int(row.integer(2))
                let isDue = row.optionalInteger(1).map { $0 <= now.milliseconds } ?? false
                guard isDue || seen == limit else { continue }
                guard let room = row.text(0).map({ RoomID($0) }) else {
                    throw .corrupt("a room's id is not text")
                }
                if isDue { page.rooms.append(room) }
                if seen == limit { page.next = room }
            }
            livesFew = livesFew || live * 4 < seen
            return page
        }
    }

    private static func successor(of text: String?) -> String { text.map { $0 + "\0" } ?? "" }
}
