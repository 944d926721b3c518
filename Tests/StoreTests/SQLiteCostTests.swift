import RoomCore
import Testing

@testable import Store

/// Costs by SQLite's own count of virtual machine steps, which no busy machine disturbs.
@Suite("costs")
struct SQLiteCostTests {
    /// Steps of the statements that a join runs, load and commit together.
    private func stepsOfJoin(_ store: SQLiteStore, _ id: RoomID, user: UserID) throws -> Int {
        func take() throws -> Int {
            try store.reading { link throws(StoreError) in
                let used = link.statements
                return [
                    used.room, used.roomHead, used.updateRoom, used.putRoom,
                    used.participant, used.putParticipant, used.answer, used.insertAnswer, used.insertOutbox,
                    used.removeOutbox, used.putLeftover, used.definition, used.countDefinition,
                ].reduce(0) { $0 + $1.takeStepCount() }
            }
        }
        _ = try take()
        let key = CommandKey(room: id, id: CommandID("join of \(user)"))
        let state = try store.load(
            BatchRequest(rooms: [id], participants: [ParticipantKey(room: id, user: user)], keys: [key]))
        let stored = try #require(state.rooms[id])
        var room = stored.room
        room.sequence += 1
        room.session?.connected += 1
        let positions = try store.commit(
            BatchCommit(
                rooms: [RoomWrite(room: room, expectedVersion: stored.version, isChanged: true)],
                participants: [
                    ParticipantWrite(
                        room: id, session: room.sessionNumber,
                        change: .connected(Participant(user: user, role: .viewer, joinedAt: .noon)))
                ],
                answers: [
                    AnswerWrite(key: key, canonical: [1], reply: [2], session: room.sessionNumber, at: .noon)
                ],
                outbox: [draft(id, room.sequence)]))
        let steps = try take()
        try store.markPublished(positions)
        return steps
    }

    @Test("a join costs the same in a room of 10 and of 1,000, among 10 rooms and 1,000")
    func join() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        func people(_ count: Int64) -> [Participant] {
            (0..<count).map { Participant(user: UserID("user \($0)"), role: .viewer, joinedAt: .noon) }
        }
        for number in 0..<10 { try store.put(.running(RoomID("other \(number)"))) }
        try store.put(.running("small", connected: 10), participants: people(10))
        let small = try stepsOfJoin(store, "small", user: "ann")
        try store.putNew((10..<1_000).map { .running(RoomID("other \($0)")) })
        try store.put(.running("large", connected: 1_000), participants: people(1_000))
        let large = try stepsOfJoin(store, "large", user: "ann")
        #expect(small > 50)
        #expect(Double(large) / Double(small) < 1.1, "\(small) and \(large) steps")
    }

    @Test("the end of a session costs the same with 10 and with 1,000 connected")
    func end() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        var steps: [Int] = []
        for count in [Int64(10), 1_000] {
            let id = RoomID("\(count)")
            let users = (0..<count).map {
                Participant(user: UserID("\($0)"), role: .viewer, joinedAt: .noon)
            }
            try store.put(.running(id, connected: count), participants: users)
            func take() throws -> Int {
                try store.reading { link throws(StoreError) in
                    let used = link.statements
                    return [used.putRoom, used.putLeftover, used.removeParticipant].reduce(0) {
                        $0 + $1.takeStepCount()
                    }
                }
            }
            _ = try take()
            try store.put(Room.running(id).ended(at: .noon))
            steps.append(try take())
        }
        #expect(steps[0] == steps[1] && steps[0] > 0)
    }

    @Test("every page and search goes by an index")
    func plans() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        let queries = [
            "SELECT * FROM rooms WHERE id = ?1": "PRIMARY KEY (id=?)",
            "SELECT id FROM rooms WHERE phase < 2 AND id >= ?1 ORDER BY id": "rooms_live (id>?)",
            "SELECT id, due_at FROM rooms WHERE phase < 2 AND id >= ?1 ORDER BY id LIMIT ?2":
                "rooms_live (id>?)",
            "SELECT id FROM rooms WHERE idle_since < ?1 ORDER BY idle_since, id LIMIT ?2": "rooms_idle",
            "SELECT reply FROM answers WHERE room = ?1 AND id = ?2": "answers_by_key (room=? AND id=?)",
            "SELECT at FROM answers WHERE number > ?1 ORDER BY number LIMIT ?2": "PRIMARY KEY (rowid>?)",
            "DELETE FROM outbox WHERE position BETWEEN ?1 AND ?2": "PRIMARY KEY (rowid>? AND rowid<?)",
        ]
        for (query, expected) in queries {
            let plan = try store.reading { link throws(StoreError) in
                let row = try link.connection.statement("EXPLAIN QUERY PLAN \(query)")
                var lines: [String] = []
                while try row.step() { lines.append(row.text(3) ?? "") }
                return lines.joined(separator: "; ")
            }
            #expect(
                plan.contains(expected) && plan.hasPrefix("SEARCH") && !plan.contains("TEMP B-TREE"),
                "\(plan)")
        }
    }

    @Test("a page of overdue rooms costs the same at the beginning and at the end")
    func overduePage() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.putNew((1_000..<3_000).map { .running(RoomID("\($0)")) })
        func steps(after room: RoomID) throws -> Int {
            let link = try store.reading { link throws(StoreError) in link }
            _ = link.statements.overduePage.takeStepCount()
            #expect(try store.overdue(at: .latest, after: room, limit: 10).rooms.count == 10)
            return link.statements.overduePage.takeStepCount()
        }
        let (first, last) = (try steps(after: "1000"), try steps(after: "2900"))
        #expect(Double(last) / Double(first) < 1.5, "\(first) and \(last) steps")
    }

    @Test("a search for overdue rooms among many that ended looks at those that live")
    func overdueAmongEnded() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.putNew((0..<1_000).map { Room.running(RoomID("ended \($0)")).ended(at: .noon) })
        try store.putNew((0..<10).map { .running(RoomID("live \($0)")) })
        var (found, pages): ([RoomID], Int) = ([], 0)
        var last: RoomID?
        repeat {
            let page = try store.overdue(at: .latest, after: last, limit: 20)
            found += page.rooms
            last = page.next
            pages += 1
        } while last != nil
        #expect(found == (0..<10).map { RoomID("live \($0)") })
        #expect(pages == 2)
    }

    @Test("what commits put off is moved into the database once it has grown, and the log begins again")
    func moveLog() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        #expect(try !store.moveLog(), "nothing has grown yet")
        let before = try store.statistics().databaseBytes
        var (grown, batch) = (Int64(0), 0)
        while grown <= 9 << 20, batch < 20 {
            try store.putNew((0..<20_000).map { .running(RoomID("\(batch) \($0)")) })
            grown = try store.statistics().journalBytes
            batch += 1
        }
        #expect(try store.moveLog())
        #expect(try !store.moveLog())
        try store.put(.running("one more"))
        let after = try store.statistics()
        #expect(after.journalBytes <= grown, "the log begins again from its start")
        let file = try #require(FileIdentity(of: folder.file()))
        #expect(file.size > before && file.size >= after.databaseBytes - 65_536)
    }

    @Test("a commit behind its load looks at no row again, and a later one writes nothing over a newer row")
    func heads() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a"))
        let link = try store.reading { link throws(StoreError) in link }
        func extended(_ stored: StoredRoom) -> BatchCommit {
            var room = stored.room
            room.sequence += 1
            return BatchCommit(
                rooms: [RoomWrite(room: room, expectedVersion: stored.version, isChanged: true)])
        }
        let loaded = try #require(try store.load(BatchRequest(rooms: ["a"])).rooms["a"])
        _ = link.statements.roomHead.takeStepCount()
        _ = try store.commit(extended(loaded))
        #expect(link.statements.roomHead.takeStepCount() == 0)
        #expect(throws: StoreError.conflict(["a"])) { try store.commit(extended(loaded)) }
        // Changed behind the back of what was loaded: the write itself finds out.
        let again = try #require(try store.load(BatchRequest(rooms: ["a"])).rooms["a"])
        try link.connection.execute("UPDATE rooms SET version = version + 1")
        #expect(throws: StoreError.conflict(["a"])) { try store.commit(extended(again)) }
        let last = try #require(try store.load(BatchRequest(rooms: ["a"])).rooms["a"])
        #expect(last.room.sequence == loaded.room.sequence + 1)
    }
}
