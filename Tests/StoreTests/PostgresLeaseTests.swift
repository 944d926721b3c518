import Glibc
import RoomCore
import Testing

@testable import Store

@Suite("leases on PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresLeaseTests {
    private func run(_ id: String, pid: Int32 = 1, place: String? = nil) -> RunRow {
        RunRow(id: id, pid: pid, host: "host of \(id)", startedAt: .noon, place: place)
    }

    private func lease(_ id: String, consumed: [Int] = [], offset: Int64 = 0) -> Lease {
        Lease(run: id, shards: 8, consumed: consumed, clockOffset: offset)
    }

    /// Stores whose runs have begun, in this order.
    private func stores(_ database: PostgresDatabase, _ ids: [String]) throws -> [PostgresStore] {
        try ids.map { id in
            let store = try database.open()
            _ = try store.beginRun(run(id))
            return store
        }
    }

    private func age(_ database: PostgresDatabase, _ id: String, by milliseconds: Int64) throws {
        try database.execute(
            "UPDATE overtime.runs SET seen_at = seen_at - (\(milliseconds)) WHERE id = '\(id)'")
    }

    @Test("a lease is told to the others with what it says, in byte order of the runs")
    func roster() throws {
        let database = try PostgresDatabase()
        let ids = ["b", "a", "B", "é", "e\u{301}", "_"]
        let stores = try stores(database, ids)
        for (store, id) in zip(stores, ids) { _ = try store.renewLease(lease(id)) }
        let before = try stores[0].now()
        let roster = try stores[0].renewLease(lease("b", consumed: [0, 5], offset: -70))
        #expect(roster.members.map(\.lease.run) == ["B", "_", "a", "b", "e\u{301}", "é"])
        #expect(
            roster.members[3]
                == Roster.Member(
                    lease: lease("b", consumed: [0, 5], offset: -70), pid: 1, host: "host of b"))
        #expect(try roster.now >= before && roster.now <= stores[1].now())
        #expect(roster.crashed.isEmpty)
        #expect(roster.shards(of: "b", count: 8) == [3])
        #expect(
            try stores[1].renewLease(lease("a")).members.map(\.lease).contains(
                lease("b", consumed: [0, 5], offset: -70)))
    }

    @Test("a lease that is not renewed is over, and its run has crashed until it comes back")
    func expiry() throws {
        let database = try PostgresDatabase()
        let stores = try stores(database, ["a", "b"])
        _ = try stores[0].renewLease(lease("a"))
        try stores[0].markAttempts(["m"], run: "a")
        #expect(try stores[1].renewLease(lease("b")).members.map(\.lease.run) == ["a", "b"])
        try age(database, "a", by: Lease.length - 1_500)
        #expect(try stores[1].renewLease(lease("b")).members.map(\.lease.run) == ["a", "b"])
        try age(database, "a", by: 1_501)
        var roster = try stores[1].renewLease(lease("b"))
        #expect(roster.members.map(\.lease.run) == ["b"] && roster.crashed == ["a"])
        #expect(try stores[1].mark(["m"], run: "b") == ["m": 1])

        roster = try stores[0].renewLease(lease("a"))
        #expect(roster.members.map(\.lease.run) == ["a", "b"] && roster.crashed.isEmpty)
        #expect(try stores[1].mark(["m"], run: "b").isEmpty)
    }

    @Test("a run that others have forgotten comes back with its next renewal")
    func forgotten() throws {
        let database = try PostgresDatabase()
        let stores = try stores(database, ["a", "b"])
        try database.execute("DELETE FROM overtime.runs WHERE id = 'a'")
        #expect(try stores[0].renewLease(lease("a")).members.map(\.lease.run) == ["a"])
    }

    @Test("a lease that is given up is over at once, and the run goes on")
    func release() throws {
        let database = try PostgresDatabase()
        let stores = try stores(database, ["a", "b"])
        _ = try stores[0].renewLease(lease("a", consumed: [1]))
        try stores[0].releaseLease(of: "a")
        var roster = try stores[1].renewLease(lease("b"))
        #expect(roster.members.map(\.lease.run) == ["b"] && roster.crashed.isEmpty)
        try age(database, "a", by: Lease.patience - 30_000)
        roster = try stores[1].renewLease(lease("b"))
        #expect(roster.members.map(\.lease.run) == ["b"] && roster.crashed.isEmpty)
        try age(database, "a", by: 30_001)
        #expect(try stores[1].renewLease(lease("b")).crashed == ["a"], "it would have come back by now")
        roster = try stores[0].renewLease(lease("a"))
        #expect(roster.members.map(\.lease.run) == ["a", "b"] && roster.crashed.isEmpty)
    }

    @Test("a run that ends has no lease and has not crashed")
    func end() throws {
        let database = try PostgresDatabase()
        let stores = try stores(database, ["a", "b"])
        _ = try stores[0].renewLease(lease("a"))
        try stores[0].endRun("a")
        let roster = try stores[1].renewLease(lease("b"))
        #expect(roster.members.map(\.lease.run) == ["b"] && roster.crashed.isEmpty)
    }

    @Test("a lease needs its run to have begun")
    func stranger() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        let error = #expect(throws: StoreError.self) { try store.renewLease(lease("a")) }
        #expect(error?.isBatchFault == true)
    }

    /// A server's clock that was wrong and was set right must not leave a dead worker its shards for all that time.
    @Test("a lease from the future is over as well")
    func future() throws {
        let database = try PostgresDatabase()
        let stores = try stores(database, ["a", "b"])
        _ = try stores[0].renewLease(lease("a"))
        try age(database, "a", by: -3_600_000)
        let roster = try stores[1].renewLease(lease("b"))
        #expect(roster.members.map(\.lease.run) == ["b"] && roster.crashed == ["a"])
        #expect(try stores[0].renewLease(lease("a")).members.map(\.lease.run) == ["a", "b"])
    }

    @Test("of a run in the same place whose process is gone the lease is over at once")
    func goneProcess() throws {
        let database = try PostgresDatabase()
        let child = try #require(endedProcess())
        let gone = try database.open()
        _ = try gone.beginRun(run("gone", pid: child, place: "here"))
        _ = try gone.renewLease(lease("gone"))
        try gone.markAttempts(["m"], run: "gone")
        let elsewhere = try database.open()
        _ = try elsewhere.beginRun(run("elsewhere", pid: child, place: "there"))
        _ = try elsewhere.renewLease(lease("elsewhere"))
        let lives = try database.open()
        _ = try lives.beginRun(run("lives", pid: getppid(), place: "here"))
        _ = try lives.renewLease(lease("lives"))

        let store = try database.open()
        #expect(try store.beginRun(run("next", pid: getpid(), place: "here")) == ["gone"])
        let roster = try store.renewLease(lease("next"))
        #expect(roster.members.map(\.lease.run) == ["elsewhere", "lives", "next"])
        #expect(roster.crashed == ["gone"])
    }

    /// After the server was away all leases are over, and all are renewed at once.
    @Test("leases that ran out together are renewed together, without a deadlock")
    func allAtOnce() throws {
        let database = try PostgresDatabase()
        let ids = (0..<6).map { "\($0)" }
        let stores = try stores(database, ids)
        for _ in 0..<20 {
            try database.execute("UPDATE overtime.runs SET seen_at = 0, crashed_at = NULL")
            let renewals = zip(stores, ids).map { store, id in
                Blocking { try store.renewLease(self.lease(id)) }
            }
            for renewal in renewals { #expect(try renewal.error() == nil) }
            #expect(try stores[0].renewLease(lease("0")).members.map(\.lease.run) == ids)
        }
        #expect(
            try database.execute(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == "0")
    }

    @Test("a renewal does not wait for a run that another one is renewing")
    func lockedRun() throws {
        let database = try PostgresDatabase()
        let stores = try stores(database, ["a", "b"])
        _ = try stores[0].renewLease(lease("a"))
        try age(database, "a", by: Lease.length)
        let third = try OtherSession(database.url)
        try third.execute("BEGIN; UPDATE overtime.runs SET pid = pid WHERE id = 'a'")
        let began = ContinuousClock.now
        #expect(try stores[1].renewLease(lease("b")).members.map(\.lease.run) == ["b"])
        #expect(ContinuousClock.now - began < .seconds(2))
        try third.execute("COMMIT")
    }
}

/// The number of a process that has ended, which nobody has now.
private func endedProcess() -> pid_t? {
    var child: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
    defer { free(arguments[0]) }
    guard posix_spawnp(&child, "true", nil, nil, &arguments, nil) == 0 else { return nil }
    var status: Int32 = 0
    return waitpid(child, &status, 0) == child ? child : nil
}
