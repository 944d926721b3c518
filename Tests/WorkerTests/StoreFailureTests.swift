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
        "Nothing is acknowledged, the queues are given back, and everything is done once it works again",
        arguments: [
            StoreError.full(path: "x"), .io(code: 10, "disk"), .busy(path: "x"), .readOnly(path: "x"),
            .conflict(["r"]),
        ])
    func outage(error: StoreError) throws {
        let bench = try Bench.serving()
        bench.store.failure = { [.commit, .check].contains($0) ? error : nil }
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.pass(3_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil)
        #expect(bench.broker.consuming[ConsumerChannel.ticks] == nil)
        #expect(bench.broker.consuming[ConsumerChannel.queries] != nil)
        #expect(bench.broker.published.isEmpty)
        bench.pass(120_000, step: 1_000)
        #expect(bench.broker.acknowledged.isEmpty)
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

    @Test("What was committed before is settled and acknowledged before the channels are closed")
    func settledFirst() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.settle()
        bench.store.failure = { [.commit, .check].contains($0) ? .full(path: "x") : nil }
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.pass(1_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] != nil)
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(200)
        #expect(bench.broker.acknowledged == ["o"])
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil)
        #expect(bench.broker.queued[ConsumerChannel.commands]?.map(\.name) == ["j"])
    }

    @Test("But they are closed after two seconds in any case")
    func closedInAnyCase() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.settle()
        bench.store.failure = { [.commit, .check].contains($0) ? .full(path: "x") : nil }
        bench.command("j", "join", user: "u")
        bench.pass(2_100)
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil)
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
        // Each time the queue is given back counts towards the broker's delivery limit.
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
        #expect(bench.worker.jobs.isEmpty, "or a stop would wait for them")
        bench.store.commitFailure = { _ in nil }
        bench.pass(4_000)
        #expect(Set(bench.broker.acknowledged).isSuperset(of: ["a", "b"]))
    }
}
