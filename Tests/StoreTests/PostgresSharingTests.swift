import RoomCore
import Testing

@testable import Store

@Suite("several stores on one PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresSharingTests {
    private func write(_ id: RoomID, over version: Int64, sequence: Int64 = 3) -> RoomWrite {
        RoomWrite(room: .running(id, sequence: sequence), expectedVersion: version, isChanged: true)
    }

    private func read(_ id: RoomID, _ version: Int64) -> RoomWrite {
        RoomWrite(room: Room(id: id), expectedVersion: version, isChanged: false)
    }

    // MARK: Conflicts

    @Test("a conflict names the rooms that the other one changed, and no others")
    func conflict() throws {
        let database = try PostgresDatabase()
        let (one, two) = (try database.open(), try database.open())
        for id in ["a", "b", "c", "d"] as [RoomID] { try one.put(.running(id)) }
        _ = try two.load(BatchRequest(rooms: ["a", "b", "c", "d", "new"]))
        try one.put(.running("b", sequence: 4))
        try one.put(.running("d", sequence: 4))
        try one.put(.running("new"))
        let batch = BatchCommit(
            rooms: [
                write("a", over: 1), write("b", over: 1), write("c", over: 1), read("d", 1),
                write("new", over: 0),
            ],
            outbox: [draft("a", 4)])
        #expect(throws: StoreError.conflict(["b", "d", "new"])) { try two.commit(batch) }
        #expect(try two.stored("a").version == 1)
        #expect(try two.unpublished(after: 0, limit: 9).isEmpty)
    }

    /// A third session has made the room already, and decides whether the two that wait for it get on.
    @Test(
        "two that make the same room at once: one does, and the other is in conflict",
        arguments: [true, false])
    func sameNewRoom(isThirdUndone: Bool) throws {
        let database = try PostgresDatabase()
        let (one, two) = (try database.open(), try database.open())
        let third = try OtherSession(database.url)
        try third.execute(
            """
            BEGIN; INSERT INTO overtime.rooms (id, version, sequence, session, is_open)
            VALUES ('new', 1, 0, 0, 0)
            """)
        let commits = [(one, Int64(10)), (two, 20)].map { store, sequence in
            Blocking {
                try store.commit(
                    BatchCommit(
                        rooms: [
                            self.write("new", over: 0, sequence: sequence), self.write("other", over: 0),
                        ],
                        answers: [answer("new", CommandID("c \(sequence)"))], outbox: [draft("new", sequence)]
                    ))
            }
        }
        try database.waitForWaiting(2)
        try third.execute(isThirdUndone ? "ROLLBACK" : "COMMIT")
        let ends = try commits.map { try $0.error() }
        let conflict = StoreError.conflict(["new", "other"])
        #expect(ends.compactMap { $0 } == [StoreError](repeating: conflict, count: isThirdUndone ? 1 : 2))
        let found = try one.stored("new")
        let keys = ["c 10", "c 20"].map { CommandKey(room: "new", id: CommandID($0)) }
        let answers = try one.load(BatchRequest(keys: keys)).answers
        let events = try one.unpublished(after: 0, limit: 9)
        #expect(found.version == 1)
        #expect(answers.count == (isThirdUndone ? 1 : 0) && events.count == answers.count)
        if isThirdUndone {
            let sequence: Int64 = ends[0] == nil ? 10 : 20
            #expect(found.room.sequence == sequence && events.map(\.draft.sequence) == [sequence])
        }
    }

    @Test(
        "two that answer the same key at once: one does, and the other is in conflict",
        arguments: [true, false], [true, false])
    func sameKey(isRoomThere: Bool, isThirdUndone: Bool) throws {
        let database = try PostgresDatabase()
        let (one, two) = (try database.open(), try database.open())
        if isRoomThere { try one.put(.running("a")) }
        let third = try OtherSession(database.url)
        try third.execute(
            """
            BEGIN; INSERT INTO overtime.answers (room, id, session, at, canonical, reply)
            VALUES ('a', 'c', 0, 0, '', '')
            """)
        let commits = [(one, UInt8(1)), (two, 2)].map { store, reply in
            Blocking {
                try store.commit(
                    BatchCommit(
                        rooms: [self.read("a", isRoomThere ? 1 : 0)],
                        answers: [answer("a", "c", reply: [reply]), answer("a", "d", reply: [reply])]))
            }
        }
        // Of a room that is there the second one waits for the first one's lock.
        try database.waitForWaiting(2)
        try third.execute(isThirdUndone ? "ROLLBACK" : "COMMIT")
        let ends = try commits.map { try $0.error() }
        let conflict = StoreError.conflict(["a"])
        #expect(ends.compactMap { $0 } == [StoreError](repeating: conflict, count: isThirdUndone ? 1 : 2))
        let keys = ["c", "d"].map { CommandKey(room: "a", id: CommandID($0)) }
        let found = try one.load(BatchRequest(keys: keys)).answers
        if isThirdUndone {
            let reply: [UInt8] = ends[0] == nil ? [1] : [2]
            #expect(keys.map { found[$0]?.reply } == [reply, reply])
        } else {
            #expect(keys.map { found[$0]?.reply } == [[], nil])
        }
    }

    @Test("a commit that waits for a room's lock sees what the other one made of it")
    func lockedRoom() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        try store.put(.running("a"))
        let third = try OtherSession(database.url)
        for (end, expected) in [("ROLLBACK", nil), ("COMMIT", StoreError.conflict(["a"]))] {
            let version = try store.stored("a").version
            try third.execute("BEGIN; UPDATE overtime.rooms SET version = version + 1")
            let commit = Blocking { try store.commit(BatchCommit(rooms: [self.write("a", over: version)])) }
            try database.waitForWaiting(1)
            try third.execute(end)
            #expect(try commit.error() == expected)
        }
    }

    // MARK: Deadlocks

    @Test("a commit that ends in a deadlock is run again, and succeeds")
    func deadlock() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        for id in ["a", "b"] as [RoomID] { try store.put(.running(id)) }
        let third = try OtherSession(database.url)
        try third.execute("BEGIN; SELECT FROM overtime.rooms WHERE id = 'b' FOR UPDATE")
        let commit = Blocking {
            try store.commit(
                BatchCommit(
                    rooms: [self.write("b", over: 1), self.write("a", over: 1)],
                    answers: [answer("a", "c")], outbox: [draft("a", 4), draft("b", 4)]))
        }
        try database.waitForWaiting(1)
        // Whom the server refuses is its own choice, by who has waited longer.
        _ = try? third.execute("SELECT FROM overtime.rooms WHERE id = 'a' FOR UPDATE")
        try third.execute("COMMIT")
        let positions = try commit.value()
        #expect(try store.unpublished(after: 0, limit: 9).map(\.position) == positions)
        #expect(try store.stored("a").version == 2 && store.stored("b").version == 2)
    }

    @Test("what got in another's way is run again, a few times", arguments: ["40P01", "40001"])
    func retries(_ code: String) throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        _ = try store.beginRun(RunRow(id: "store", pid: 1, host: "h", startedAt: .noon))
        try store.put(.running("a"))
        func fail(on table: String, times: Int) throws {
            try database.execute(
                """
                CREATE SEQUENCE IF NOT EXISTS public.tries;
                SELECT setval('public.tries', 1, false);
                CREATE OR REPLACE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF nextval('public.tries') <= \(times) THEN RAISE 'in the way' USING ERRCODE = '\(code)'; END IF;
                    RETURN NEW;
                END $$;
                CREATE OR REPLACE TRIGGER fail BEFORE UPDATE ON overtime.\(table) EXECUTE FUNCTION public.fail()
                """)
        }
        func batch(_ version: Int64) -> BatchCommit {
            BatchCommit(
                rooms: [write("a", over: version)], answers: [answer("a", CommandID("\(version)"))],
                outbox: [draft("a", version)])
        }
        try fail(on: "rooms", times: 4)
        _ = try store.commit(batch(1))
        try fail(on: "rooms", times: 5)
        let error = #expect(throws: StoreError.self) { try store.commit(batch(2)) }
        #expect(error?.isTransient == true && error?.leavesDoubt == false)
        #expect(try store.stored("a").version == 2)
        _ = try store.commit(batch(2))
        #expect(try store.unpublished(after: 0, limit: 9).map(\.draft.sequence) == [1, 2])

        try database.execute("UPDATE overtime.outbox SET owner = 'gone'")
        try fail(on: "outbox", times: 4)
        #expect(try store.inherit(limit: 9).count == 2)
        try fail(on: "runs", times: 4)
        let lease = Lease(run: "store", shards: 1, consumed: [], clockOffset: 0)
        #expect(try store.renewLease(lease).members.count == 1)
    }

    @Test("two that make the same rooms in opposite order do not wait for each other in a circle")
    func orderOfNewRooms() throws {
        let database = try PostgresDatabase()
        let (one, two) = (try database.open(), try database.open())
        let third = try OtherSession(database.url)
        for round in 0..<5 {
            let ids = (0..<50).map { RoomID("\(round) \($0)") }
            // Both are to begin at once.
            try third.execute(
                """
                BEGIN; INSERT INTO overtime.rooms (id, version, sequence, session, is_open)
                VALUES ('\(ids.min()?.text ?? "")', 1, 0, 0, 0), ('\(ids.max()?.text ?? "")', 1, 0, 0, 0)
                """)
            let commits = [(one, ids), (two, ids.reversed())].map { store, ids in
                Blocking {
                    try store.commit(BatchCommit(rooms: ids.map { self.write($0, over: 0) }))
                }
            }
            try database.waitForWaiting(2)
            try third.execute("ROLLBACK")
            let ends = try commits.map { try $0.error() }
            #expect(ends.compactMap { $0 }.count == 1)
        }
        #expect(
            try database.execute(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == "0")
    }

    // MARK: Positions

    @Test("positions ascend within each room, whichever store commits")
    func positions() throws {
        let database = try PostgresDatabase()
        let stores = [try database.open(), try database.open()]
        let rooms = (0..<4).map { RoomID("\($0)") }
        try stores[0].putNew(rooms.map { .running($0, sequence: 0) })
        let end = ContinuousClock.now + .seconds(2)
        let writers = stores.enumerated().map { number, store in
            Blocking {
                var random = SeededGenerator(seed: UInt64(number))
                var commits = 0
                while ContinuousClock.now < end {
                    let ids = rooms.filter { _ in Bool.random(using: &random) }
                    let state = try store.load(BatchRequest(rooms: ids))
                    var batch = BatchCommit()
                    for id in ids.shuffled(using: &random) {
                        guard let stored = state.rooms[id] else { continue }
                        var room = stored.room
                        room.sequence += 1
                        batch.rooms.append(
                            RoomWrite(room: room, expectedVersion: stored.version, isChanged: true))
                        batch.outbox.append(draft(id, room.sequence))
                    }
                    if try store.commitUnlessConflict(batch) != nil { commits += 1 }
                }
                return commits
            }
        }
        for writer in writers { #expect(try writer.value() > 10) }
        let events = try stores[0].unpublished(after: 0, limit: .max)
        for id in rooms {
            let sequences = events.filter { $0.draft.room == id }.map(\.draft.sequence)
            #expect(sequences == Array(1...Int64(sequences.count)))
        }
    }
}
