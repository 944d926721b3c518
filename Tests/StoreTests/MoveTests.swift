import RoomCore
import Testing

@testable import Store

/// What a store can be asked for.
private struct Contents: Hashable {
    var rooms: [RoomID: StoredRoom]
    var live: [Room] = []
    var overdue: [RoomID] = []
    var participants: [RoomID: [Participant]] = [:]
    var named: [ParticipantKey: Participant]
    var answers: [CommandKey: StoredAnswer]
    var outbox: [OutboxMessage] = []

    /// Everything of the rooms, users and keys that `source` made, in small pages.
    init(of store: any RoomStore, _ source: SampleStore) throws {
        let state = try store.load(
            BatchRequest(
                rooms: source.rooms, participants: source.participants, keys: source.keys))
        rooms = state.rooms
        named = state.participants
        answers = state.answers
        while true {
            let page = try store.liveRooms(after: live.last?.id, limit: 7)
            if page.isEmpty { break }
            live += page
        }
        var last: RoomID?
        repeat {
            let page = try store.overdue(at: .noon(plus: 60), after: last, limit: 9)
            overdue += page.rooms
            last = page.next
        } while last != nil
        for room in live {
            participants[room.id] = try store.participants(
                of: room.id, session: room.sessionNumber, after: nil, limit: 1_000)
        }
        while true {
            let page = try store.unpublished(after: outbox.last?.position ?? 0, limit: 11)
            if page.isEmpty { break }
            outbox += page
        }
    }
}

/// A SQLite store with rooms in every state, and whatever else such a store holds.
private final class SampleStore {
    let folder: TemporaryFolder
    private(set) var rooms: [RoomID] = []
    private(set) var participants: [ParticipantKey] = []
    private(set) var keys: [CommandKey] = []
    private(set) var contents: Contents?
    var path: String { folder.file() }

    init(seed: UInt64, rooms count: Int = 60) throws {
        folder = try TemporaryFolder()
        var dice = SeededGenerator(seed: seed)
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        _ = try store.beginRun(RunRow(id: "run-crashed", pid: 1, host: "host", startedAt: .noon))
        try store.markAttempts(["crash-1", "crash-2"], run: "run-crashed")
        // Some definitions are those of many rooms.
        let common = dice.definition()
        for number in 0..<count {
            let id = RoomID("\(dice.text())-\(number)")
            rooms.append(id)
            for _ in 0...Int.random(in: 0...2, using: &dice) { try put(id, common, in: store, &dice) }
        }
        let positions = try store.unpublished(after: 0, limit: 10_000).map(\.position)
        try store.markPublished(positions.filter { _ in Int.random(in: 0...2, using: &dice) == 0 })
        // The last number that was given is not to be given again, though its row is gone.
        try store.markPublished(positions.suffix(1))
        _ = try store.prune(
            Retention(now: .noon(plus: 9_000), idsFor: .minutes(8_990), roomsFor: .minutes(500)), limit: 5)
        contents = try Contents(of: store, self)
        store.close()
    }

    private func put(
        _ id: RoomID, _ common: Definition, in store: SQLiteStore, _ dice: inout SeededGenerator
    ) throws {
        var room = dice.room(id)
        if let session = room.session, Bool.random(using: &dice), session.phase == .waiting {
            room.definition = common
            room.session = Session(
                number: session.number, definition: common, phase: .waiting, connected: session.connected,
                changedAt: session.changedAt)
        }
        let users = (0..<Int.random(in: 0...4, using: &dice)).map { UserID("\(dice.text())\($0)") }
        participants += users.map { ParticipantKey(room: id, user: $0) }
        let key = CommandKey(room: id, id: CommandID("\(dice.text())-\(keys.count)"))
        keys.append(key)
        let version = try store.stored(id).version
        let sequence = room.sequence
        _ = try store.commit(
            BatchCommit(
                rooms: [RoomWrite(room: room, expectedVersion: version, isChanged: true)],
                participants: users.map { user in
                    ParticipantWrite(
                        room: id, session: room.sessionNumber,
                        change: .connected(
                            Participant(
                                user: user, role: dice.one(of: [.moderator, .participant, .viewer]),
                                joinedAt: dice.instant())))
                },
                answers: [
                    AnswerWrite(
                        key: key, canonical: Array(dice.text().utf8),
                        reply: dice.one(of: [[], [0, 255, 128], Array(dice.text().utf8)]),
                        session: room.sessionNumber, at: .noon(plus: .random(in: -9...9, using: &dice)))
                ],
                outbox: (0..<Int.random(in: 0...3, using: &dice)).map { number in
                    OutboxDraft(
                        room: id, sequence: sequence, type: "session.started",
                        messageID: "\(id.text):\(number)", timestamp: .random(in: 0 ... .max, using: &dice),
                        body: dice.one(of: [[], [0], Array(dice.text().utf8)]),
                        trace: dice.maybe("00-\(number)-01"), format: .random(in: 0...3, using: &dice))
                }))
    }

    /// Every row of the file, whatever it means to the program.
    func dump() throws -> String {
        let file = try ForeignConnection(path)
        let tables = [
            "rooms", "definitions", "participants", "leftovers", "answers", "outbox", "runs", "attempts",
            "sqlite_sequence",
        ]
        return try tables.map { table in
            let columns =
                try file.run(
                    "SELECT group_concat('quote(' || name || ')', '||') FROM pragma_table_info('\(table)')")
                ?? ""
            return try file.run(
                "SELECT group_concat(line, ';') FROM (SELECT \(columns) AS line FROM \(table))")
                ?? ""
        }.joined(separator: "\n")
    }
}

@Suite("moving a store to PostgreSQL", .enabled(if: PostgresServer.isThere))
struct MoveTests {
    private func move(
        _ path: String, to url: String, rows: Int = 2_000, bytes: Int = 4 << 20,
        afterPage: @escaping (String) throws(MoveError) -> Void = { _ in }
    ) -> StoreMove {
        StoreMove(
            from: path, to: url, startedAt: .noon, at: "2026-11-29T12:00:00Z", pageRows: rows,
            pageBytes: bytes, afterPage: afterPage)
    }

    /// Ends a migration after so many pages, as a kill does; false where it came to its end before.
    private func moveAndKill(_ path: String, to url: String, afterPages pages: Int, rows: Int) throws -> Bool
    {
        var left = pages
        let killed = MoveError.missing(path: "killed")
        do throws(MoveError) {
            _ = try move(path, to: url, rows: rows) { _ throws(MoveError) in
                left -= 1
                if left == 0 { throw killed }
            }.run { _ in }
            return false
        } catch {
            guard error == killed else { throw error }
            return true
        }
    }

    @Test("every room, participant, answer and event is identical", arguments: 1...6)
    func everything(_ seed: Int) throws {
        let sample = try SampleStore(seed: UInt64(seed))
        let before = try sample.dump()
        let database = try PostgresDatabase()
        var steps: [StoreMove.Step] = []
        let (rows, bytes) = [(1, 1 << 20), (7, 1), (13, 300), (2_000, 4 << 20)][seed % 4]
        let outcome = try move(sample.path, to: database.url, rows: rows, bytes: bytes)
            .run { steps.append($0) }
        #expect(outcome == .moved(rooms: sample.rooms.count))
        #expect(
            steps.map(\.kind) == MovedTable.all.map { _ in .copied } + MovedTable.all.map { _ in .compared })
        #expect(steps.prefix(7).map(\.rows) == steps.suffix(7).map(\.rows))
        #expect(try sample.dump() == before)

        let store = try PostgresStore(url: database.url)
        let crashed = try store.beginRun(RunRow(id: "new", pid: 2, host: "host", startedAt: .noon))
        #expect(crashed == ["run-crashed"])
        #expect(try store.mark(["crash-1"], run: "new") == ["crash-1": 1])
        let moved = try Contents(of: store, sample)
        #expect(moved == sample.contents)
        let outbox = try #require(sample.contents?.outbox)
        #expect(!outbox.isEmpty && !moved.live.isEmpty && !moved.named.isEmpty && !moved.answers.isEmpty)

        // What is written now stands above everything that was moved, and the versions go on.
        for id in sample.rooms.prefix(10) {
            let found = try #require(moved.rooms[id])
            var room = found.room
            room.isOpen.toggle()
            let positions = try store.commit(
                BatchCommit(
                    rooms: [RoomWrite(room: room, expectedVersion: found.version, isChanged: true)],
                    answers: [answer(id, "new")], outbox: [draft(id, 1)]))
            #expect(try positions[0] > sample.highestPosition())
            #expect(try store.stored(id) == StoredRoom(room: room, version: found.version + 1))
        }
        let mixed = try database.execute(
            "SELECT min(number) FILTER (WHERE id = 'new') > max(number) FILTER (WHERE id <> 'new') FROM overtime.answers"
        )
        #expect(mixed == "t")
        while try store.prune(
            Retention(now: .latest, idsFor: .minutes(1), roomsFor: .minutes(1)), limit: 100
        ).isUnfinished {}
        let kept = try Contents(of: store, sample)
        for (id, room) in kept.rooms { #expect(room.room.sequence == moved.rooms[id]?.room.sequence) }
    }

    @Test("goes on where it was killed, at whatever page")
    func killed() throws {
        let sample = try SampleStore(seed: 11, rooms: 25)
        let database = try PostgresDatabase()
        var pages = 1
        while true {
            guard try moveAndKill(sample.path, to: database.url, afterPages: pages, rows: 9) else { break }
            let refused = #expect(throws: StoreError.self) { try PostgresStore(url: database.url) }
            guard case .halfMoved(_, let from) = refused else {
                Issue.record("\(String(describing: refused))")
                return
            }
            #expect(sample.path.hasSuffix(from) || from.hasSuffix("rooms.db"))
            var steps: [StoreMove.Step] = []
            _ = try move(sample.path, to: database.url).run { steps.append($0) }
            #expect(steps[0].wentOn)
            let store = try PostgresStore(url: database.url)
            #expect(try Contents(of: store, sample) == sample.contents)
            _ = try ForeignConnection(sample.path).run(
                "DROP TABLE moved; PRAGMA application_id = \(Schema.applicationID)")
            store.close()
            try database.execute("DROP SCHEMA overtime CASCADE")
            pages += 1
        }
        #expect(pages > 10)
    }

    @Test("killed again and again it comes to its end")
    func killedOften() throws {
        let sample = try SampleStore(seed: 12, rooms: 25)
        let database = try PostgresDatabase()
        var kills = 0
        while try moveAndKill(sample.path, to: database.url, afterPages: 1, rows: 9) { kills += 1 }
        #expect(kills > 10)
        #expect(try Contents(of: PostgresStore(url: database.url), sample) == sample.contents)
    }

    @Test("goes on where the connection was lost")
    func connectionLost() throws {
        let sample = try SampleStore(seed: 20, rooms: 25)
        let database = try PostgresDatabase()
        var pages = 0
        let error = #expect(throws: MoveError.self) {
            try move(sample.path, to: database.url, rows: 5) { _ throws(MoveError) in
                pages += 1
                guard pages == 3 else { return }
                _ = try? database.execute(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()
                    """)
            }.run { _ in }
        }
        guard case .target(.unreachable) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        var steps: [StoreMove.Step] = []
        #expect(try move(sample.path, to: database.url).run { steps.append($0) } == .moved(rooms: 25))
        #expect(steps[0].wentOn && steps[0].rows == 10)
        #expect(try Contents(of: PostgresStore(url: database.url), sample) == sample.contents)
    }

    @Test("between its mark and its end no worker may use either store")
    func markedAndKilled() throws {
        let sample = try SampleStore(seed: 13, rooms: 5)
        let database = try PostgresDatabase()
        #expect(throws: MoveError.self) {
            try move(sample.path, to: database.url) { page throws(MoveError) in
                if page == "mark" { throw .missing(path: "killed") }
            }.run { _ in }
        }
        #expect(throws: StoreError.self) { try PostgresStore(url: database.url) }
        #expect(throws: StoreError.self) { try SQLiteStore(path: sample.path, startedAt: .noon) }
        #expect(try move(sample.path, to: database.url).run { _ in } == .moved(rooms: 5))
        try PostgresStore(url: database.url).check()
    }

    @Test("afterwards a worker refuses the SQLite store, and the same command does nothing")
    func afterwards() throws {
        let sample = try SampleStore(seed: 14, rooms: 5)
        let database = try PostgresDatabase()
        _ = try move(sample.path, to: database.url).run { _ in }
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: sample.path, startedAt: .noon) }
        guard case .moved(_, let target, let at) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(at == "2026-11-29T12:00:00Z" && target.hasPrefix("postgresql://127.0.0.1:"))
        #expect(!target.contains("overtime:") && error?.isTransient == false)
        let store = try PostgresStore(url: database.url)
        try store.put(.running("new"))
        #expect(
            try move(sample.path, to: database.url).run { _ in } == .movedBefore(at: "2026-11-29T12:00:00Z"))
        #expect(try store.stored("new").version == 1)
        // Nor anywhere else.
        let other = try PostgresDatabase()
        let elsewhere = #expect(throws: MoveError.self) { try move(sample.path, to: other.url).run { _ in } }
        guard case .source(.moved) = elsewhere else {
            Issue.record("\(String(describing: elsewhere))")
            return
        }
        #expect(try other.execute("SELECT count(*) FROM overtime.moves") == "0")
    }

    @Test("begins anew where the SQLite store was used in between")
    func usedInBetween() throws {
        let sample = try SampleStore(seed: 15, rooms: 30)
        let database = try PostgresDatabase()
        #expect(try moveAndKill(sample.path, to: database.url, afterPages: 4, rows: 6))
        do {
            let store = try SQLiteStore(path: sample.path, startedAt: .noon)
            try store.put(.running(sample.rooms[0], session: 100, sequence: 5))
            try store.put(
                .running("new"), participants: [Participant(user: "u", role: .viewer, joinedAt: .noon)])
            store.close()
        }
        var steps: [StoreMove.Step] = []
        #expect(try move(sample.path, to: database.url).run { steps.append($0) } == .moved(rooms: 31))
        #expect(!steps[0].wentOn && steps[0].rows == 31)
        let store = try PostgresStore(url: database.url)
        #expect(
            try store.stored(sample.rooms[0]).room == .running(sample.rooms[0], session: 100, sequence: 5))
        #expect(try store.participants(of: "new", session: 1, after: nil, limit: 9).count == 1)
    }

    /// Whatever anybody does to the rows between the copy and the comparison.
    private static let changes = [
        "UPDATE overtime.rooms SET sequence = sequence - 1 WHERE id = 'b'",
        "UPDATE overtime.rooms SET session_definition = definition WHERE id = 'b'",
        "DELETE FROM overtime.rooms WHERE id = 'b'",
        "INSERT INTO overtime.rooms (id, version, sequence, session, is_open) VALUES ('a0', 1, 1, 1, 0)",
        "INSERT INTO overtime.rooms (id, version, sequence, session, is_open) VALUES ('zz', 1, 1, 1, 0)",
        "UPDATE overtime.participants SET role = 1",
        "UPDATE overtime.answers SET reply = '\\x00'", "UPDATE overtime.answers SET position = 9",
        "UPDATE overtime.outbox SET body = body || '\\x00'", "UPDATE overtime.outbox SET trace = ''",
        "INSERT INTO overtime.runs (id, pid, host, started_at) VALUES ('r', 1, 'h', 1)",
    ]

    @Test("what was changed in the target is found, named, and moved again")
    func changedTarget() throws {
        let folder = try TemporaryFolder()
        let source = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for room in ["a", "b", "c"] as [RoomID] {
            try source.put(
                .running(room), participants: [Participant(user: "u", role: .viewer, joinedAt: .noon)])
            _ = try source.commit(BatchCommit(answers: [answer(room, "k")], outbox: [draft(room, 1)]))
        }
        source.close()
        let database = try PostgresDatabase()
        for change in Self.changes {
            var isChanged = false
            let error = #expect(throws: MoveError.self, "\(change)") {
                try move(folder.file(), to: database.url).run { step in
                    guard step.kind == .copied, step.table == "attempts" else { return }
                    isChanged = (try? database.execute(change + "; SELECT 1")) == "1"
                }
            }
            guard case .different(let table, _, _) = error else {
                Issue.record("\(change): \(String(describing: error))")
                return
            }
            #expect(isChanged && change.contains(table), "\(change)")
            // Nobody may use what differs; the SQLite store is as it was.
            #expect(throws: StoreError.self) { try PostgresStore(url: database.url) }
            try SQLiteStore(path: folder.file(), startedAt: .noon).close()
        }
        #expect(try move(folder.file(), to: database.url).run { _ in } == .moved(rooms: 3))
    }

    @Test("refuses what it cannot move, and where it cannot move to")
    func refusals() throws {
        let folder = try TemporaryFolder()
        let database = try PostgresDatabase()
        func refusal(_ path: String, _ url: String? = nil) -> MoveError? {
            #expect(throws: MoveError.self) { try move(path, to: url ?? database.url).run { _ in } }
        }
        let missing = folder.file("none.db")
        #expect(refusal(missing) == .missing(path: missing))
        #expect(!FileIdentity.exists(missing) && !FileIdentity.exists(missing + ".lock"))
        let theirs = folder.file("theirs.db")
        _ = try ForeignConnection(theirs).run("CREATE TABLE theirs (a)")
        guard case .source(.notADatabase) = refusal(theirs) else {
            Issue.record("another program's database")
            return
        }
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a"))
        guard case .source(.heldByAnother) = refusal(folder.file()) else {
            Issue.record("a worker that runs")
            return
        }
        store.close()
        guard
            case .target(.denied) = refusal(folder.file(), database.url.replacing(":overtime@", with: ":no@"))
        else {
            Issue.record("a wrong password")
            return
        }

        let target = try PostgresStore(url: database.url)
        _ = try target.beginRun(RunRow(id: "theirs", pid: 1, host: "elsewhere", startedAt: .noon))
        guard case .inUse(_, "theirs", "elsewhere") = refusal(folder.file()) else {
            Issue.record("a worker without a lease")
            return
        }
        _ = try target.renewLease(Lease(run: "theirs", shards: 1, consumed: [0], clockOffset: 0))
        guard case .inUse = refusal(folder.file()) else {
            Issue.record("a worker with a lease")
            return
        }
        try target.endRun("theirs")
        try target.put(.running("theirs"))
        guard case .occupied(_, let what) = refusal(folder.file()) else {
            Issue.record("a database with rooms")
            return
        }
        #expect(what.contains("rooms"))

        // Half of another one's.
        let other = try PostgresDatabase()
        let sample = try SampleStore(seed: 16, rooms: 9)
        #expect(try moveAndKill(sample.path, to: other.url, afterPages: 1, rows: 2))
        guard case .occupied(_, let half) = refusal(folder.file(), other.url) else {
            Issue.record("half a migration")
            return
        }
        #expect(half.contains("half of a migration"))

        _ = try ForeignConnection(folder.file()).run("DELETE FROM definitions")
        guard case .source(.corruptRoom("a", _)) = refusal(folder.file(), other.url) else {
            Issue.record("a room without its definition")
            return
        }
    }

    @Test("one migration at a time goes into a database")
    func twoAtOnce() throws {
        let (first, second) = (try SampleStore(seed: 17, rooms: 3), try SampleStore(seed: 18, rooms: 3))
        let database = try PostgresDatabase()
        var error: MoveError?
        _ = try move(first.path, to: database.url).run { step in
            guard error == nil else { return }
            error = #expect(throws: MoveError.self) { try move(second.path, to: database.url).run { _ in } }
        }
        guard case .underWay = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("is taken back where nothing has changed since, and only then")
    func back() throws {
        let sample = try SampleStore(seed: 19, rooms: 20)
        let database = try PostgresDatabase()
        #expect(throws: MoveError.self) { try move(sample.path, to: database.url).takeBack { _ in } }
        _ = try move(sample.path, to: database.url).run { _ in }
        try move(sample.path, to: database.url).takeBack { _ in }
        #expect(throws: StoreError.self) { try PostgresStore(url: database.url) }
        do {
            let store = try SQLiteStore(path: sample.path, startedAt: .noon)
            #expect(try Contents(of: store, sample) == sample.contents)
            try store.put(.running("new"))
            store.close()
        }

        // It may be moved again, and what was moved before is replaced.
        #expect(try move(sample.path, to: database.url).run { _ in } == .moved(rooms: 21))
        let store = try PostgresStore(url: database.url)
        try store.put(.running("new", sequence: 4))
        store.close()
        let error = #expect(throws: MoveError.self) {
            try move(sample.path, to: database.url).takeBack { _ in }
        }
        guard case .changedSince(_, "rooms", _, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        try PostgresStore(url: database.url).check()

        // What is left then is a restore, which advances the sequences.
        let restored = sample.folder.file("restored.db")
        let result = try Restore(store: restored, from: sample.path, asideEnding: "old")
            .run(replaces: false, startedAt: .noon)
        #expect(result.rooms == 21)
        let again = try SQLiteStore(path: restored, startedAt: .noon)
        #expect(try again.stored("new").room.sequence == 3 + Restore.jump)
    }

    @Test("moves an empty store, and one of an earlier schema")
    func smallest() throws {
        let folder = try TemporaryFolder()
        try SQLiteStore(path: folder.file(), startedAt: .noon).close()
        let database = try PostgresDatabase()
        #expect(try move(folder.file(), to: database.url).run { _ in } == .moved(rooms: 0))
        let store = try PostgresStore(url: database.url)
        #expect(try store.commit(BatchCommit(outbox: [draft("a", 1)])) == [1])

        let older = try TemporaryFolder()
        let first = try? SQLiteStore(
            path: older.file(), startedAt: .noon, checksIntegrityUpTo: 0,
            migrations: Array(Schema.migrations.prefix(1)), onDefect: { _ in })
        first?.close()
        let other = try PostgresDatabase()
        #expect(try move(older.file(), to: other.url).run { _ in } == .moved(rooms: 0))
    }
}

extension SampleStore {
    fileprivate func highestPosition() throws -> Int64 {
        let text = try ForeignConnection(path).run("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'")
        return try #require(text.flatMap { Int64($0) })
    }
}

extension FileIdentity {
    fileprivate static func exists(_ path: String) -> Bool { FileIdentity(of: path) != nil }
}
