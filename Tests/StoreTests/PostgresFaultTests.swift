import FoundationEssentials
import Glibc
import RoomCore
import Testing

@testable import Store

@Suite("a store on PostgreSQL in trouble", .enabled(if: PostgresServer.isThere))
struct PostgresFaultTests {
    /// Every kind of call, ready to be made again and again.
    private static let calls: [(name: String, call: @Sendable (PostgresStore) throws -> Void)] = [
        ("load", { _ = try $0.load(BatchRequest(rooms: ["a"], keys: [CommandKey(room: "a", id: "c")])) }),
        (
            "commit",
            { store in
                let next = Int64.random(in: 0 ... .max)
                _ = try store.commit(
                    BatchCommit(
                        rooms: [
                            RoomWrite(
                                room: .running(RoomID("\(next)")), expectedVersion: 0, isChanged: true)
                        ], outbox: [draft("a", next >> 8)]))
            }
        ),
        ("unpublished from the start", { _ = try $0.unpublished(after: 0, limit: 9) }),
        ("unpublished", { _ = try $0.unpublished(after: 5, limit: 9) }),
        ("markPublished", { try $0.markPublished([1, 2, 3]) }),
        ("liveRooms", { _ = try $0.liveRooms(after: nil, limit: 9) }),
        ("participants", { _ = try $0.participants(of: "a", session: 1, after: nil, limit: 9) }),
        ("overdue", { _ = try $0.overdue(at: .noon, after: nil, limit: 9) }),
        ("prune", { _ = try $0.prune(Retention(now: .noon, idsFor: .zero, roomsFor: .zero), limit: 9) }),
        (
            "beginRun",
            { _ = try $0.beginRun(RunRow(id: "run", pid: 1, host: "h", startedAt: .noon, place: "here")) }
        ),
        ("endRun", { try $0.endRun("other") }),
        ("markAttempts", { try $0.markAttempts(["m"], run: "run") }),
        ("crashes", { _ = try $0.crashes(of: ["m"]) }),
        ("statistics", { _ = try $0.statistics() }),
        ("check", { try $0.check() }),
        (
            "renewLease",
            { _ = try $0.renewLease(Lease(run: "run", shards: 1, consumed: [], clockOffset: 0)) }
        ),
        ("releaseLease", { try $0.releaseLease(of: "run") }),
        ("inherit", { _ = try $0.inherit(limit: 9) }),
    ]

    private func store(_ database: PostgresDatabase) throws -> PostgresStore {
        let store = try database.open()
        _ = try store.beginRun(RunRow(id: "run", pid: 1, host: "h", startedAt: .noon))
        try store.put(.running("a"))
        return store
    }

    /// All tables, as LOCK TABLE takes them.
    private func tables(_ session: OtherSession) throws -> String {
        try session.execute(
            """
            SELECT string_agg(format('overtime.%I', relname), ', ') FROM pg_class
            WHERE relnamespace = 'overtime'::regnamespace AND relkind = 'r'
            """) ?? ""
    }

    /// What must be known of an error that a lost connection leaves.
    private func expectDoubt(_ error: StoreError?, _ name: String) {
        #expect(
            error?.isTransient == true && error?.leavesDoubt == true,
            "\(name): \(error.map { "\($0)" } ?? "none")")
    }

    @Test("a connection that is killed before a call fails that call, and the next one works")
    func killedBefore() throws {
        let database = try PostgresDatabase()
        let store = try store(database)
        for (name, call) in Self.calls + [("now", { @Sendable in _ = try $0.now() })] {
            try database.toStores("pg_terminate_backend")
            expectDoubt(try Blocking { try call(store) }.error(), name)
            #expect(throws: Never.self, "\(name)") { try call(store) }
        }
    }

    /// A third session holds all tables, so that each call waits for it within its first or only round trip.
    @Test("a connection that is killed within a call fails that call, and the next one works")
    func killedWithin() throws {
        let database = try PostgresDatabase()
        let store = try store(database)
        let third = try OtherSession(database.url)
        let all = try tables(third)
        for (name, call) in Self.calls {
            try third.execute("BEGIN; LOCK TABLE \(all)")
            let blocked = Blocking { try call(store) }
            try database.waitForWaiting(1)
            try database.toStores("pg_terminate_backend")
            expectDoubt(try blocked.error(), name)
            try third.execute("COMMIT")
            #expect(throws: Never.self, "\(name)") { try call(store) }
        }
    }

    @Test("a statement that is cancelled fails its call, and the same connection goes on")
    func cancelled() throws {
        let database = try PostgresDatabase()
        let store = try store(database)
        let third = try OtherSession(database.url)
        let all = try tables(third)
        var before = store.traffic.roundTrips
        for (name, call) in Self.calls {
            try third.execute("BEGIN; LOCK TABLE \(all)")
            let blocked = Blocking { try call(store) }
            try database.waitForWaiting(1)
            try database.toStores("pg_cancel_backend")
            let error = try blocked.error()
            #expect(error?.isTransient == true && error?.leavesDoubt == false, "\(name)")
            try third.execute("COMMIT")
            #expect(throws: Never.self, "\(name)") { try call(store) }
            #expect(store.traffic.roundTrips > before, "\(name): it connected anew")
            before = store.traffic.roundTrips
        }
    }

    // MARK: In doubt

    /// The server's answer to a commit is lost on the way; the commit is not.
    @Test("a commit whose answer is lost is found by its answers")
    func lostAnswer() throws {
        let database = try PostgresDatabase()
        let relay = try Relay(to: PostgresServer.port)
        defer { relay.end() }
        let store = try PostgresStore(url: PostgresServer.url(of: database, over: relay.port))
        try store.put(.running("a"))
        let third = try OtherSession(database.url)
        // The commit waits where it writes, after its first round trip.
        try third.execute("BEGIN; LOCK TABLE overtime.outbox IN EXCLUSIVE MODE")
        let batch = BatchCommit(
            rooms: [RoomWrite(room: .running("a", sequence: 4), expectedVersion: 1, isChanged: true)],
            answers: [answer("a", "c")], outbox: [draft("a", 4)])
        let commit = Blocking { try store.commit(batch) }
        try database.waitForWaiting(1)
        relay.mode = .swallowAnswers
        try third.execute("COMMIT")
        try waitUntil("the commit is there") {
            try third.execute("SELECT version FROM overtime.rooms WHERE id = 'a'") == "2"
        }
        relay.cut()
        expectDoubt(try commit.error(), "commit")
        relay.mode = .pass
        let state = try store.load(BatchRequest(rooms: ["a"], keys: [CommandKey(room: "a", id: "c")]))
        #expect(state.rooms["a"]?.version == 2 && state.answers.count == 1)
        #expect(throws: StoreError.conflict(["a"])) { try store.commit(batch) }
        #expect(try store.unpublished(after: 0, limit: 9).count == 1)
    }

    @Test("a commit that is cut off before the server has it leaves nothing")
    func cutOff() throws {
        let database = try PostgresDatabase()
        let relay = try Relay(to: PostgresServer.port)
        defer { relay.end() }
        let store = try PostgresStore(url: PostgresServer.url(of: database, over: relay.port))
        try store.put(.running("a"))
        let third = try OtherSession(database.url)
        try third.execute("BEGIN; SELECT FROM overtime.rooms FOR UPDATE")
        let batch = BatchCommit(
            rooms: [RoomWrite(room: .running("a", sequence: 4), expectedVersion: 1, isChanged: true)])
        let commit = Blocking { try store.commit(batch) }
        try database.waitForWaiting(1)
        relay.cut()
        expectDoubt(try commit.error(), "commit")
        try third.execute("COMMIT")
        #expect(try store.stored("a").version == 1)
        _ = try store.commit(batch)
    }

    // MARK: Silence

    @Test("a server that says nothing is given up once, and asked again by the next call")
    func silent() throws {
        let database = try PostgresDatabase()
        let relay = try Relay(to: PostgresServer.port)
        defer { relay.end() }
        let url = PostgresServer.url(of: database, over: relay.port) + "?connect_timeout=2"
        let store = try PostgresStore(url: url, silence: 500)
        for call in [{ _ = try store.stored("a") }, { try store.check() }] as [() throws -> Void] {
            relay.mode = .swallowAnswers
            let began = ContinuousClock.now
            expectDoubt(try Blocking(call).error(), "silence")
            let waited = ContinuousClock.now - began
            #expect(waited > .milliseconds(490) && waited < .milliseconds(990))
            expectDoubt(try Blocking(call).error(), "silence at the login")
            relay.mode = .refuse
            relay.cut()
            expectDoubt(try Blocking(call).error(), "no server")
            relay.mode = .pass
            try call()
        }
    }

    /// What a worker that was frozen within a commit holds, others get.
    @Test("a client that stops within its transaction loses it, and its locks are free")
    func frozenClient() throws {
        let database = try PostgresDatabase()
        let (frozen, other) = (try database.open(), try database.open())
        try frozen.put(.running("a"))
        let lock = PostgresConnection.Call(.lockRooms) { $0.add(["a"] as [RoomID]) }
        let woken = Blocking {
            try frozen.transaction([lock]) { _ throws(StoreError) in
                sleep(8)
                return ([PostgresConnection.Call(.probe)], ())
            }
        }
        usleep(200_000)
        let began = ContinuousClock.now
        try other.put(.running("a", sequence: 9))
        let waited = ContinuousClock.now - began
        #expect(waited > .seconds(3) && waited < .seconds(7))
        expectDoubt(try woken.error(), "the transaction")
        #expect(try frozen.stored("a").room.sequence == 9)
    }

    @Test(
        "a server that stands still is given up, and what it held back does no harm",
        .enabled(if: PostgresServer.isLocal))
    func frozenServer() throws {
        let database = try PostgresDatabase()
        let store = try PostgresStore(url: database.url, silence: 1_000)
        try store.put(.running("a"))
        let session = try OtherSession(database.url)
        let pid = try #require(
            session.execute(
                """
                SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'overtime worker'
                """
            ).flatMap { Int32($0) })
        let third = try OtherSession(database.url)
        try third.execute("BEGIN; LOCK TABLE overtime.outbox IN EXCLUSIVE MODE")
        let batch = BatchCommit(
            rooms: [RoomWrite(room: .running("a", sequence: 4), expectedVersion: 1, isChanged: true)],
            answers: [answer("a", "c")], outbox: [draft("a", 4)])
        let commit = Blocking { try store.commit(batch) }
        try database.waitForWaiting(1)
        try #require(kill(pid, SIGSTOP) == 0)
        try third.execute("COMMIT")
        expectDoubt(try commit.error(), "commit")
        // The room is locked by what stands still. Woken, that finds its client gone, or commits what it was sent.
        let other = try database.open()
        let again = Blocking { try other.commit(batch) }
        try database.waitForWaiting(2)
        kill(pid, SIGCONT)
        let error = try again.error()
        #expect(error == nil || error == .conflict(["a"]))
        #expect(try store.stored("a").version == 2)
        #expect(try store.unpublished(after: 0, limit: 9).count == 1)
    }

    @Test("a server that is restarted is found again", .enabled(if: PostgresServer.isLocal))
    func restart() throws {
        let folder = try TemporaryFolder()
        try PostgresServer.script("start", folder.path)
        defer { _ = try? PostgresServer.script("stop", folder.path) }
        let store = try PostgresStore(url: try PostgresServer.script("url", folder.path))
        var version: Int64 = 0
        for mode in ["fast", "immediate"] {
            try store.put(.running("a"))
            version += 1
            try PostgresServer.script("restart", folder.path, mode)
            expectDoubt(try Blocking { try store.put(.running("a")) }.error(), mode)
            #expect(try store.stored("a").version == version)
        }
        try PostgresServer.script("kill", folder.path)
        expectDoubt(try Blocking { try store.check() }.error(), "kill")
        expectDoubt(try Blocking { try store.check() }.error(), "no server")
        try PostgresServer.script("start", folder.path)
        #expect(try store.stored("a").version == version)
        try store.put(.running("a"))
    }

    @Test("a closed store says so")
    func closed() throws {
        let database = try PostgresDatabase()
        let store = try store(database)
        store.close()
        for (name, call) in Self.calls where name != "renewLease" {
            #expect(throws: StoreError.closed, "\(name)") { try call(store) }
        }
    }
}
