import RoomCore

extension SQLiteStore {
    package func prune(_ retention: Retention, limit: Int) throws(StoreError) -> PruneCount {
        guard limit > 0 else { return PruneCount() }
        var cursor = answersCursor
        let count = try writing { link throws(StoreError) -> PruneCount in
            var count = PruneCount()
            try pruneAnswers(retention, limit: limit, from: &cursor, &count, link)
            try pruneParticipants(limit: limit, &count, link)
            try pruneRooms(retention, limit: limit, &count, link)
            try pruneRuns(retention, &count, link)
            return count
        }
        answersCursor = cursor
        return count
    }

    /// Goes through the expired answers, the oldest first, a piece a call, and then begins anew: those that a long
    /// session keeps must not be looked at in every call. The first that has not expired ends it; one from the future,
    /// which a wrong clock left, does not.
    private func pruneAnswers(
        _ retention: Retention, limit: Int, from cursor: inout Int64,
        _ count: inout PruneCount, _ link: Link
    ) throws(StoreError) {
        var expired: [Int64] = []
        var seen = 0
        do {
            let row = link.statements.oldAnswers
            defer { row.reset() }
            row.bind(1, cursor)
            row.bind(2, Int64(limit))
            let (first, last) = ((retention.now - retention.idsFor).milliseconds, retention.now.milliseconds)
            while try row.step() {
                let at = row.integer(0)
                if at >= first, at <= last { break }
                cursor = row.integer(1)
                seen += 1
                let isKeptBySession = row.integer(2) == 1
                if at < first, !isKeptBySession { expired.append(cursor) }
            }
        }
        for number in expired {
            link.statements.removeAnswer.bind(1, number)
            try link.statements.removeAnswer.run()
        }
        count.answers = expired.count
        if seen == limit { count.isUnfinished = true } else { cursor = .min }
    }

    private func pruneParticipants(
        limit: Int, _ count: inout PruneCount, _ link: Link
    ) throws(StoreError) {
        var left = limit
        while left > 0, let (room, below) = try firstLeftover(link) {
            let rows = try leftoverRows(room, below: below, limit: left, link)
            for row in rows {
                link.statements.removeParticipant.bind(1, room)
                link.statements.removeParticipant.bind(2, row.session)
                link.statements.removeParticipant.bind(3, row.user)
                try link.statements.removeParticipant.run()
            }
            count.participants += rows.count
            guard rows.count < left else { break }
            // Counted as a row, so that a great many empty rooms do not make a long call.
            left -= rows.count + 1
            link.statements.removeLeftover.bind(1, room)
            try link.statements.removeLeftover.run()
        }
        if try firstLeftover(link) != nil { count.isUnfinished = true }
    }

    private func firstLeftover(_ link: Link) throws(StoreError) -> (room: RoomID, below: Int64)? {
        let row = link.statements.leftovers
        defer { row.reset() }
        guard try row.step() else { return nil }
        guard let room = row.text(0) else { throw .corrupt("a room's id is not text") }
        return (RoomID(room), row.integer(1))
    }

    private func leftoverRows(
        _ room: RoomID, below: Int64, limit: Int, _ link: Link
    ) throws(StoreError) -> [(session: Int64, user: UserID)] {
        let row = link.statements.leftoverRows
        defer { row.reset() }
        row.bind(1, room)
        row.bind(2, below)
        row.bind(3, Int64(limit))
        var rows: [(session: Int64, user: UserID)] = []
        while try row.step() {
            guard let user = row.text(1) else { throw .corruptRoom(room, "a user's id is not text") }
            rows.append((row.integer(0), UserID(user)))
        }
        return rows
    }

    /// Takes the definition and the last session away; who holds an older copy of the room finds a conflict.
    private func pruneRooms(
        _ retention: Retention, limit: Int, _ count: inout PruneCount, _ link: Link
    ) throws(StoreError) {
        var idle: [RoomID] = []
        do {
            let row = link.statements.idleRooms
            defer { row.reset() }
            row.bind(1, (retention.now - retention.roomsFor).milliseconds)
            row.bind(2, Int64(limit))
            while try row.step() {
                guard let room = row.text(0) else { throw .corrupt("a room's id is not text") }
                idle.append(RoomID(room))
            }
        }
        for id in idle {
            guard let head = try head(of: id, link), let sequence = try sequence(of: id, link) else {
                continue
            }
            _ = try write(Room(id: id, sequence: sequence, sessionNumber: head.session), over: head, link)
        }
        count.rooms = idle.count
        if idle.count == limit { count.isUnfinished = true }
    }

    private func sequence(of id: RoomID, _ link: Link) throws(StoreError) -> Int64? {
        let row = link.statements.room
        defer { row.reset() }
        row.bind(1, id)
        return try row.step() ? row.integer(2) : nil
    }

    /// A mark counts against a message for as long as an id does; then its message is taken to be gone.
    private func pruneRuns(
        _ retention: Retention, _ count: inout PruneCount, _ link: Link
    ) throws(StoreError) {
        let before = (retention.now - retention.idsFor).milliseconds
        link.statements.forgottenAttempts.bind(1, before)
        try link.statements.forgottenAttempts.run()
        link.statements.forgottenRuns.bind(1, before)
        try link.statements.forgottenRuns.run()
        count.runs = link.connection.changes
    }
}
