package import RoomCore

/// Pages for queries and for the start. A cursor names the last row of the page before; the next one begins at its
/// successor in byte order, which is the same name with a zero byte behind it.
extension PostgresStore {
    package func liveRooms(after last: RoomID?, limit: Int) throws(StoreError) -> [Room] {
        let answer = try ask(.livePage) { parameters in
            parameters.add(Self.successor(of: last?.text))
            parameters.add(max(limit, 0))
        }
        var rooms: [Room] = []
        rooms.reserveCapacity(answer.count)
        for row in 0..<answer.count {
            let id = RoomID(try Self.name(answer, row, 0))
            // One unreadable room must not hide all the others from the scheduler.
            do throws(StoreError) { rooms.append(try room(answer, row, id: id)) } catch {
                guard error.isBatchFault else { throw error }
                onDefect(error)
            }
        }
        return rooms
    }

    package func participants(
        of room: RoomID, session: Int64, after last: UserID?, limit: Int
    ) throws(StoreError) -> [Participant] {
        let answer = try ask(.participantPage) { parameters in
            parameters.add(room)
            parameters.add(session)
            parameters.add(Self.successor(of: last?.text))
            parameters.add(max(limit, 0))
        }
        var participants: [Participant] = []
        for row in 0..<answer.count {
            participants.append(
                try ParticipantFields.participant(
                    UserID(try Self.name(answer, row, 0)), role: answer.integer(row, 1),
                    joinedAt: answer.integer(row, 2), of: room))
        }
        return participants
    }

    package func overdue(
        at now: Instant, after last: RoomID?, limit: Int
    ) throws(StoreError) -> OverduePage {
        if last == nil { livesFew = false }
        let answer = try ask(livesFew ? .overdueLivePage : .overduePage) { parameters in
            parameters.add(Self.successor(of: last?.text))
            parameters.add(max(limit, 0))
        }
        var page = OverduePage()
        var live = 0
        for row in 0..<answer.count {
            live += answer.integer(row, 2) == 1 ? 1 : 0
            let isDue = answer.optionalInteger(row, 1).map { $0 <= now.milliseconds } ?? false
            let isLast = row == limit - 1
            guard isDue || isLast else { continue }
            let room = RoomID(try Self.name(answer, row, 0))
            if isDue { page.rooms.append(room) }
            if isLast { page.next = room }
        }
        livesFew = livesFew || live * 4 < answer.count
        return page
    }

    private static func successor(of text: String?) -> String { text.map { $0 + "\0" } ?? "" }
}
