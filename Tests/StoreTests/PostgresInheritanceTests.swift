import RoomCore
import Testing

@testable import Store

@Suite("events of others on PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresInheritanceTests {
    private func lease(_ id: String) -> Lease {
        Lease(run: id, shards: 1, consumed: [], clockOffset: 0)
    }

    private func store(_ database: PostgresDatabase, _ id: String, holdsLease: Bool = true) throws
        -> PostgresStore
    {
        let store = try database.open()
        _ = try store.beginRun(RunRow(id: id, pid: 1, host: "h", startedAt: .noon))
        if holdsLease { _ = try store.renewLease(lease(id)) }
        return store
    }

    private func owner(_ database: PostgresDatabase, _ position: Int64?) throws -> String? {
        try database.execute("SELECT owner FROM overtime.outbox WHERE position = \(position ?? 0)")
    }

    @Test("a room is loaded with what others have not published of it, and without one's own")
    func unsent() throws {
        let database = try PostgresDatabase()
        let (one, two) = (try store(database, "one"), try store(database, "two"))
        let first = try one.commit(BatchCommit(outbox: [draft("a", 1), draft("b", 1), draft("a", 2)]))
        let second = try two.commit(BatchCommit(outbox: [draft("a", 3)]))
        let events = try one.unpublished(after: first[0] - 1, limit: 9)
        func unsent(_ store: PostgresStore, _ rooms: [RoomID]) throws -> [OutboxMessage] {
            try store.load(BatchRequest(rooms: rooms)).unsent
        }
        #expect(try unsent(two, ["a", "a", "c"]) == [events[0], events[2]])
        #expect(try unsent(two, ["b", "a"]).map(\.position) == first)
        #expect(try unsent(one, ["a", "b"]).map(\.position) == second)
        #expect(try unsent(two, ["c"]).isEmpty)
        #expect(try two.load(BatchRequest(keys: [CommandKey(room: "a", id: "1")])).unsent.isEmpty)
        try two.markPublished([first[0]])
        #expect(try unsent(two, ["a"]) == [events[2]])
        #expect(try two.unpublished(after: 0, limit: 9).map(\.position) == second, "both live")
    }

    @Test("what a run without a lease left is taken over: whole rooms, in order, once")
    func inherit() throws {
        let database = try PostgresDatabase()
        let (gone, lives) = (try store(database, "gone"), try store(database, "lives"))
        let other = try store(database, "other")
        let left = try gone.commit(
            BatchCommit(outbox: [draft("a", 1), draft("b", 1), draft("c", 1), draft("a", 2)]))
        let living = try lives.commit(BatchCommit(outbox: [draft("a", 3), draft("d", 1)]))
        let own = try other.commit(BatchCommit(outbox: [draft("b", 2)]))
        #expect(try other.inherit(limit: 9).isEmpty)
        try gone.releaseLease(of: "gone")

        // Of at most two rooms: what a room has of others all together, its own not.
        #expect(try other.inherit(limit: 0).isEmpty)
        #expect(try other.inherit(limit: 2).map(\.position) == [left[0], left[1], left[3], living[0]])
        #expect(try other.inherit(limit: 2).map(\.position) == [left[2]])
        #expect(try other.inherit(limit: 2).isEmpty)
        #expect(try lives.inherit(limit: 9).isEmpty)
        #expect(try gone.inherit(limit: 9).isEmpty)
        #expect(
            try other.unpublished(after: 1, limit: 9).map(\.position)
                == (left + [living[0]] + own).sorted().filter { $0 > 1 })
        #expect(try owner(database, living[1]) == "lives")
    }

    @Test("what a clean end left is taken over, also of a run nobody remembers")
    func cleanEnd() throws {
        let database = try PostgresDatabase()
        let (gone, lives) = (try store(database, "gone"), try store(database, "lives"))
        let left = try gone.commit(BatchCommit(outbox: [draft("a", 1)]))
        try gone.endRun("gone")
        #expect(try lives.inherit(limit: 9).map(\.position) == left)
    }

    @Test("a store that begins reading from the start takes over everything, and then reads only its own")
    func fromTheStart() throws {
        let database = try PostgresDatabase()
        let gone = try store(database, "gone")
        let lives = try store(database, "lives")
        let left = try gone.commit(BatchCommit(outbox: (1...2_500).map { draft(RoomID("\($0 % 700)"), $0) }))
        let living = try lives.commit(BatchCommit(outbox: [draft("x", 1)]))
        try gone.endRun("gone")
        let next = try store(database, "next", holdsLease: false)
        var found: [OutboxMessage] = []
        repeat {
            let page = try next.unpublished(after: found.last?.position ?? 0, limit: 400)
            guard !page.isEmpty else { break }
            found += page
        } while true
        #expect(found.map(\.position) == left)
        #expect(found.map(\.draft.sequence) == Array(1...2_500))
        #expect(try next.inherit(limit: 9).isEmpty)
        #expect(try owner(database, living[0]) == "lives")
    }

    @Test("two that take over at once share what there is")
    func atOnce() throws {
        let database = try PostgresDatabase()
        let gone = try store(database, "gone", holdsLease: false)
        let heirs = [try store(database, "one"), try store(database, "two")]
        for _ in 0..<10 {
            let left = try gone.commit(BatchCommit(outbox: (1...200).map { draft(RoomID("\($0 % 40)"), $0) }))
            let shares = heirs.map { heir in
                Blocking {
                    var all: [OutboxMessage] = []
                    repeat {
                        let some = try heir.inherit(limit: 7)
                        guard !some.isEmpty else { return all }
                        all += some
                    } while true
                }
            }
            let found = try shares.map { try $0.value() }
            #expect((found[0] + found[1]).map(\.position).sorted() == left)
            let rooms = found.map { Set($0.map(\.draft.room)) }
            #expect(rooms[0].isDisjoint(with: rooms[1]))
            try heirs[0].markPublished(left)
        }
    }

    @Test("a refusal while taking over leaves the store fit for the next call")
    func refused() throws {
        let database = try PostgresDatabase()
        let gone = try store(database, "gone", holdsLease: false)
        let store = try store(database, "store")
        let left = try gone.commit(BatchCommit(outbox: [draft("a", 1)]))
        gone.close()
        let third = try OtherSession(database.url)
        try third.execute("BEGIN; SELECT FROM overtime.outbox FOR UPDATE")
        let inherited = Blocking { try store.inherit(limit: 9) }
        try database.waitForWaiting(1)
        try database.toStores("pg_cancel_backend")
        #expect(try inherited.error()?.isTransient == true)
        try third.execute("COMMIT")
        #expect(try store.stored("a").version == 0)
        #expect(try store.inherit(limit: 9).map(\.position) == left)
    }
}
