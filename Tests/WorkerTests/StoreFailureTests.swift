import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("While the store fails")
struct StoreFailureTests {
    private func tries(_ bench: Bench) -> Int { bench.store.calls[.check] ?? 0 }

    @Test(
        "Nothing is acknowledged, everything is held, and done once it works again",
        arguments: [
            StoreError.full(path: "x"), .io(code: 10, "disk"), .busy(path: "x"), .readOnly(path: "x"),
        ])
    func outage(error: StoreError) throws {
        let bench = try Bench.serving()
        bench.store.failure = { [.commit, .check].contains($0) ? error : nil }
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.pass(3_000)
        #expect(bench.broker.published.isEmpty)
        bench.pass(120_000, step: 1_000)
        #expect(bench.broker.acknowledged.isEmpty)
        #expect(bench.generation == 1, "giving back counts towards the broker's delivery limit")
        #expect(bench.logFile.lines(containing: "the store fails").count == 1)
        bench.store.failure = { _ in nil }
        bench.pass(11_000)
        #expect(bench.broker.acknowledged == ["o", "j"])
        #expect(bench.events == ["r:1", "r:2", "r:3"])
        #expect(bench.replies.map(\.id) == ["o", "j"])
        #expect(bench.worker.jobs.isEmpty)
        #expect(bench.logFile.lines(containing: "the store works again").count == 1)
        #expect(bench.worker.fatal == nil)
    }

    @Test("A real transaction is tried after 1 s, doubling to 10 s")
    func probes() throws {
        let bench = try Bench.serving()
        bench.store.failure = { _ in .full(path: "x") }
        bench.command("o", "open")
        bench.settle()
        let start = bench.uptime
        var at: [Int64] = []
        for _ in 0..<500 {
            let before = tries(bench)
            bench.pass(100)
            if tries(bench) > before { at.append(bench.uptime - start) }
        }
        #expect(at == [1_000, 3_000, 7_000, 15_000, 25_000, 35_000, 45_000])
    }

    @Test("After a quarter of an hour the queues are given back, once, and taken again when it works")
    func givenBack() throws {
        let bench = try Bench.serving()
        bench.store.failure = { [.commit, .check].contains($0) ? .full(path: "x") : nil }
        bench.command("o", "open")
        bench.tick("t", ["r"])
        bench.pass(890_000, step: 1_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] != nil)
        bench.pass(20_000, step: 1_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil)
        #expect(bench.broker.consuming[ConsumerChannel.ticks] == nil)
        #expect(bench.broker.consuming[ConsumerChannel.queries] != nil)
        #expect(bench.broker.queued[ConsumerChannel.commands]?.map(\.name) == ["o"])
        #expect(bench.worker.jobs.isEmpty)
        bench.pass(7_200_000, step: 5_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil)
        bench.store.failure = { _ in nil }
        bench.pass(11_000)
        #expect(Set(bench.broker.acknowledged) == ["o", "t"])
        #expect(bench.logFile.lines(containing: "given back").count == 1)
    }

    @Test("A worker that is stopped while the store fails gives back what it holds")
    func stopped() throws {
        let bench = try Bench.serving()
        bench.store.failure = { [.commit, .check, .endRun].contains($0) ? .full(path: "x") : nil }
        bench.command("o", "open")
        bench.tick("t", ["r"])
        bench.pass(3_000)
        bench.handle(.stop)
        bench.pass(1_000)
        #expect(bench.worker.isStopped)
        #expect(bench.broker.queued[ConsumerChannel.commands]?.map(\.name) == ["o"])
    }

    /// What a load of these rooms meets; a batch that has nothing to do with them is fine.
    private func unreadable(_ rooms: Set<RoomID>) -> (BatchRequest) -> StoreError? {
        { request in request.rooms.contains { rooms.contains($0) } ? .io(code: 266, "disk I/O error") : nil }
    }

    @Test("A room that cannot be read waits by itself: nothing is given back, and it is done once healed")
    func oneRoom() throws {
        let bench = try Bench.serving()
        bench.store.loadFailure = unreadable(["bad"])
        for number in 0..<20 {
            bench.command("a\(number)", "open", number == 7 ? "bad" : "r\(number)")
        }
        bench.pass(2_000)
        var healthy = (0..<20).filter { $0 != 7 }.map { "a\($0)" }
        #expect(bench.broker.acknowledged == healthy)
        let searches = bench.store.calls[.overdue]
        // For hours, with more for both.
        for hour in 0..<3 {
            bench.command("bad\(hour)", "join", "bad", user: "u\(hour)")
            bench.command("good\(hour)", "join", "r1", user: "u\(hour)")
            bench.settle()
            healthy.append("good\(hour)")
            #expect(bench.broker.acknowledged == healthy, "at once, and without the other one")
            bench.pass(3_600_000, step: 5_000)
        }
        #expect(bench.logFile.lines(containing: "the store fails:").count == 1)
        #expect(bench.generation == 1, "nothing was delivered twice")
        #expect(bench.store.calls[.overdue] == searches, "no other room was missed")
        bench.store.loadFailure = { _ in nil }
        bench.pass(10_100)
        #expect(bench.broker.acknowledged == healthy + ["a7", "bad0", "bad1", "bad2"], "in their order")
        #expect(bench.worker.aside.isEmpty)
        #expect(bench.worker.jobs.isEmpty)
        #expect(try bench.room("bad")?.session?.connected == 3)
        #expect(bench.broker.faults == [])
    }

    @Test("Windows of other rooms open beside one that cannot be read, at the start and from ticks")
    func windowsBeside() throws {
        let bench = try Bench.serving()
        for room in ["bad", "good", "late"] {
            bench.command("o\(room)", "open", room, more: #","duration":"20m""#)
            bench.command("j\(room)", "join", room, user: "u")
        }
        bench.settle()
        bench.store.loadFailure = unreadable(["bad"])
        bench.pass(600_000, step: 1_000)
        bench.tick("t", ["bad", "good"])
        bench.pass(3_000)
        #expect(bench.events.contains("good:4"))
        #expect(bench.broker.acknowledged.contains("t"))
        try bench.replaceWorker()
        bench.pass(3_000)
        #expect(bench.worker.phase == .serving)
        #expect(bench.events.contains("late:4"))
        #expect(!bench.events.contains("bad:4"))
        bench.store.loadFailure = { _ in nil }
        bench.pass(11_000)
        #expect(bench.events.contains("bad:4"))
        #expect(bench.worker.aside.isEmpty)
    }

    @Test("A disk with room for a probe only: little is given back, and all is done once healed")
    func probeFits() throws {
        let bench = try Bench.serving()
        bench.store.commitFailure = { $0.outbox.isEmpty ? nil : .full(path: "x") }
        for number in 0..<200 { bench.command("a\(number)", "open", "r\(number)") }
        bench.pass(4 * 3_600_000, step: 1_000)
        // A broker takes 200.
        #expect(bench.generation < 20)
        #expect(bench.broker.acknowledged.isEmpty)
        bench.store.commitFailure = { _ in nil }
        bench.pass(20_000)
        #expect(Set(bench.broker.acknowledged).count == 200)
        #expect(bench.worker.aside.isEmpty)
    }

    @Test("An unknown commit of a room that is tried alone is found out before the room goes on")
    func unknownOutcomeAlone() throws {
        let bench = try Bench.serving()
        var failures = 0
        bench.store.doubt = { call in
            guard call == .commit, failures < 3 else { return nil }
            failures += 1
            return .io(code: 10, "disk")
        }
        bench.command("o", "open")
        for user in ["u", "v", "w"] { bench.command(user, "join", user: user) }
        bench.pass(30_000)
        #expect(bench.events == (1...5).map { "r:\($0)" })
        #expect(bench.broker.acknowledged == ["o", "u", "v", "w"])
        #expect(try bench.outbox().isEmpty)
    }

    @Test("A query that meets the fault stops nobody")
    func query() throws {
        let bench = try Bench.serving()
        bench.store.failure = { $0 == .liveRooms ? .io(code: 266, "disk I/O error") : nil }
        bench.query(#"{"query":"rooms"}"#)
        bench.command("o", "open")
        bench.settle()
        #expect(bench.broker.acknowledged.contains("o"))
        #expect(bench.worker.counters.storeFailures == 1)
    }

    @Test("A room that cannot be pruned is left for later", arguments: [true, false])
    func pruning(isFault: Bool) throws {
        let bench = try Bench()
        bench.store.failure = { call in
            guard call == .prune else { return nil }
            return isFault ? .corruptRoom("old", "odd") : .io(code: 266, "disk I/O error")
        }
        bench.start()
        bench.command("o", "open")
        bench.settle()
        #expect(bench.broker.acknowledged == ["o"])
        bench.pass(100_000, step: 1_000)
        #expect(bench.store.calls[.prune] == 4)
        #expect(bench.logFile.lines(containing: "the store fails").isEmpty)
    }

    @Test("A commit whose outcome is unknown is found out: applied once, told once the outbox is read again")
    func unknownOutcome() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        bench.store.doubt = { $0 == .commit ? .io(code: 10, "disk") : nil }
        bench.command("j", "join", user: "u")
        bench.settle()
        #expect(bench.events == ["r:1"])
        bench.store.doubt = { _ in nil }
        bench.pass(4_000)
        #expect(bench.events == ["r:1", "r:2", "r:3"])
        #expect(bench.broker.acknowledged == ["o", "j"])
        #expect(bench.worker.counters.repeated == 1)
        #expect(try bench.outbox().isEmpty)
    }

    @Test("A store that takes a probe and no batch is tried ever more slowly, and says each change")
    func flapping() throws {
        let bench = try Bench.serving()
        bench.store.commitFailure = { $0.outbox.isEmpty ? nil : .full(path: "x") }
        bench.command("o", "open")
        bench.pass(120_000, step: 500)
        #expect(bench.logFile.lines(containing: "the store fails").count < 20)
        bench.store.commitFailure = { _ in nil }
        bench.pass(11_000)
        #expect(bench.broker.acknowledged == ["o"])
        bench.store.failure = { _ in .full(path: "x") }
        bench.command("p", "open", "q")
        bench.settle()
        bench.store.failure = { _ in nil }
        bench.pass(2_200)
        #expect(bench.broker.acknowledged == ["o", "p"], "after a commit the first try is early again")
    }

    @Test("Marking what was published or pruning may fail as well", arguments: [true, false])
    func betweenBatches(marking: Bool) throws {
        let bench = try Bench.serving()
        bench.store.failure = { $0 == (marking ? .markPublished : .prune) ? .full(path: "x") : nil }
        bench.command("o", "open")
        bench.pass(31_000, step: 1_000)
        #expect(bench.worker.counters.storeFailures > 0)
        bench.store.failure = { _ in nil }
        bench.pass(40_000, step: 1_000)
        #expect(try bench.outbox().isEmpty)
        #expect(bench.events == ["r:1"])
        #expect(bench.broker.consuming[ConsumerChannel.commands] != nil)
    }

    @Test(
        "What no waiting mends is given to a person",
        arguments: [StoreError.corrupt("page 7"), .replaced(path: "x")])
    func fatal(error: StoreError) throws {
        let bench = try Bench.serving()
        bench.store.failure = { $0 == .commit ? error : nil }
        bench.command("o", "open")
        bench.settle()
        #expect(bench.worker.fatal == error)
        #expect(bench.broker.acknowledged.isEmpty)
    }

    @Test("A room that meets conflicts for ever waits in order, others go on, and nobody spins")
    func endlessConflict() throws {
        let bench = try Bench.serving()
        bench.store.commitFailure = { batch in
            batch.rooms.contains { $0.room.id == "r" } ? .conflict(["r"]) : nil
        }
        bench.command("o", "open")
        bench.command("p", "open", "q")
        bench.command("j", "join", user: "u")
        bench.tick("t", ["r", "q"])
        bench.settle()
        #expect(bench.wait > 0)
        let tries = bench.store.calls[.commit] ?? 0
        bench.command("k", "join", "q", user: "u")
        bench.pass(60_000, step: 1_000)
        #expect((bench.store.calls[.commit] ?? 0) - tries < 120)
        #expect(bench.broker.acknowledged == ["t", "p", "k"])
        #expect(bench.logFile.lines(containing: "the store fails").isEmpty)
        #expect(bench.worker.counters.storeFailures == 0)
        bench.store.commitFailure = { _ in nil }
        bench.pass(11_000)
        #expect(bench.broker.acknowledged == ["t", "p", "k", "o", "j"])
        #expect(bench.worker.aside.isEmpty && bench.worker.jobs.isEmpty)
    }

    @Test("A conflict is decided again with what the other one wrote")
    func conflict() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        var isFirst = true
        bench.store.commitFailure = { _ in
            defer { isFirst = false }
            return isFirst ? .conflict(["r"]) : nil
        }
        bench.command("j", "join", user: "u")
        bench.settle()
        #expect(bench.broker.acknowledged == ["o", "j"])
        #expect(bench.worker.counters.storeFailures == 0)
    }

    @Test("A command that the store refuses is a dead letter; its neighbours are fine")
    func isolation() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        bench.store.commitFailure = { batch in
            batch.answers.contains { $0.key.id == "odd" } ? .refused("too odd") : nil
        }
        bench.tick("t", ["r", "x"])
        for name in ["a", "odd", "b"] { bench.command(name, "join", user: name) }
        bench.settle()
        #expect(bench.letters.map { $0.properties.headers?["x-overtime-reason"]?.text } == ["store_refused"])
        #expect(Set(bench.broker.acknowledged) == ["o", "a", "odd", "b", "t"])
        #expect(try bench.room("r")?.session?.connected == 2)
        #expect(bench.worker.counters.storeFailures == 0)
        #expect(bench.broker.faults == [])
    }

    @Test("A store that fails in the middle of trying one by one leaves no job behind")
    func failsWhileIsolating() throws {
        let bench = try Bench.serving()
        var commits = 0
        bench.store.commitFailure = { _ in
            commits += 1
            return commits == 1 ? .refused("odd") : commits > 2 ? .full(path: "x") : nil
        }
        bench.tick("t", ["x", "y", "z"])
        bench.tick("u", ["x", "y"])
        for name in ["a", "b"] { bench.command(name, "open", name) }
        bench.settle()
        #expect(bench.worker.health.isFailing)
        bench.pass(200)
        bench.store.commitFailure = { _ in nil }
        bench.pass(4_000)
        #expect(Set(bench.broker.acknowledged) == ["a", "b", "t", "u"])
        #expect(bench.worker.jobs.isEmpty, "or a stop would wait for them")
    }
}
