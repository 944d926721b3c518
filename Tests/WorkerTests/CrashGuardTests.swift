import AMQP
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("A message that kills the worker")
struct CrashGuardTests {
    /// Kills the worker (as far as a test can) whenever the command `poison` is decided.
    private func crashOnPoison(_ bench: Bench) {
        bench.store.loadFailure = { request in
            guard request.keys.contains(where: { $0.id == "poison" }) else { return nil }
            bench.fuse.blowsAt = 0
            _ = bench.fuse.pass()
            return .io(code: -1, "dead")
        }
    }

    private func marks(_ bench: Bench) -> Int { bench.store.calls[.markAttempts] ?? 0 }

    @Test("Is found by three marks and dead-lettered; its neighbours are decided as if nothing had been")
    func isolated() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        crashOnPoison(bench)
        for name in ["before", "poison", "after"] { bench.command(name, "join", user: name) }
        var crashes = 0
        bench.settle()
        while bench.fuse.isBlown {
            crashes += 1
            try #require(crashes < 10, "never found")
            try bench.replaceWorker()
        }
        #expect(crashes == 4, "one in a batch, three alone")
        #expect(bench.letters.map { $0.properties.headers?["x-overtime-reason"]?.text } == ["crashed_worker"])
        #expect(Set(bench.broker.acknowledged) == ["o", "before", "poison", "after"])
        #expect(bench.broker.faults == [])
        #expect(try bench.room("r")?.session?.connected == 2)
        #expect(bench.broker.isDone(ConsumerChannel.commands))
    }

    @Test("A command is never given up for what a tick does in the same moment")
    func neighboursUnharmed() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        try bench.replaceWorker(connecting: false)
        bench.store.loadFailure = { request in
            guard request.rooms.contains("deadly") else { return nil }
            bench.fuse.blowsAt = 0
            _ = bench.fuse.pass()
            return .io(code: -1, "dead")
        }
        bench.command("innocent", "join", user: "u", redelivered: true)
        for round in 0..<3 {
            bench.tick("t\(round)", ["deadly"])
            bench.start()
            try #require(bench.fuse.isBlown)
            try bench.replaceWorker(connecting: false)
            bench.broker.queued[ConsumerChannel.ticks] = []
        }
        bench.start()
        #expect(bench.letters.isEmpty)
        #expect(bench.broker.acknowledged.contains("innocent"))
    }

    @Test("Nothing is marked after a clean stop, a closed channel or a lost connection")
    func nothingMarked() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.command("j", "join", user: "u", redelivered: true)
        bench.settle()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("k", "join", user: "v")
        bench.settle()
        bench.bounceConsumer()
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(200)
        bench.loseConsumer()
        bench.connectConsumer()
        bench.settle()
        bench.handle(.stop)
        bench.pass(200)
        #expect(bench.worker.isStopped)
        try bench.replaceWorker()
        bench.command("l", "leave", user: "v", redelivered: true)
        bench.settle()
        #expect(marks(bench) == 0)
        #expect(bench.broker.acknowledged.contains("l"))
    }

    @Test("After a crash redelivered commands are marked and decided together, until the first fresh one")
    func careful() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        try bench.replaceWorker(connecting: false)
        for name in ["a", "b"] { bench.command(name, "join", user: name, redelivered: true) }
        for name in ["c", "d"] { bench.command(name, "join", user: name) }
        bench.command("e", "join", user: "e", redelivered: true)
        let before = bench.store.commits.count
        bench.start()
        let batches = bench.store.commits.dropFirst(before).map { $0.answers.map(\.key.id.text) }
        #expect(batches.filter { !$0.isEmpty } == [["a", "b", "c", "d", "e"]])
        #expect(marks(bench) == 1)
        #expect(bench.store.commits.flatMap(\.clearedAttempts).count == 3, "also of what was no suspect")
        // The commits took the marks away: another crash counts nothing.
        try bench.replaceWorker(connecting: false)
        bench.command("a", "join", user: "a", redelivered: true)
        bench.start()
        #expect(bench.letters.isEmpty)
    }

    @Test("A redelivered message's commit removes all its marks: another may have lost it with a channel")
    func lostMark() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.command("j", "join", user: "u", redelivered: true)
        bench.settle()
        #expect(marks(bench) == 0)
        let cleared = bench.store.commits.map { $0.clearedAttempts.count }.reduce(0, +)
        #expect(cleared == 1)
    }

    @Test("What is no command is dead-lettered for that, and no mark of it is left to count at a later crash")
    func noCommand() throws {
        let bench = try Bench.serving()
        try bench.replaceWorker(connecting: false)
        for round in 0..<5 {
            bench.command("bad", "nonsense", user: "u", redelivered: true)
            bench.start()
            #expect(bench.letters.count == round + 1)
            try bench.replaceWorker(connecting: false)
        }
        let reasons = Set(bench.letters.map { $0.properties.headers?["x-overtime-reason"]?.text })
        #expect(reasons.count == 1 && !reasons.contains("crashed_worker"))
    }

    @Test("With several queues each has its own end of what the crash left behind")
    func severalQueues() {
        var guardian = CrashGuard(crashedRuns: ["x"], attempts: 3)
        func delivery(_ queue: ShortString, _ redelivered: Bool) -> Delivery {
            Delivery(
                consumerTag: queue, tag: DeliveryTag(generation: 1, number: 1), redelivered: redelivered,
                exchange: "", routingKey: "", properties: Properties(), body: .bytes([]))
        }
        let sequence: [(ShortString, Bool)] = [
            ("0", true), ("0", false), ("1", true), ("0", true), ("1", true),
        ]
        let marked = sequence.map { guardian.isSuspect(delivery($0, $1)) }
        #expect(marked == [true, false, true, false, true], "another queue's redelivery may still kill")
        var calm = CrashGuard(crashedRuns: [], attempts: 3)
        let isMarked = calm.isSuspect(delivery("0", true))
        #expect(!isMarked)
    }

    @Test("A message has one name at each delivery, and different ones differ")
    func keys() {
        func key(_ body: String, id: ShortString? = nil, _ redelivered: Bool = false) -> AttemptKey {
            CrashGuard.key(
                of: Delivery(
                    consumerTag: "c", tag: DeliveryTag(generation: 1, number: 1), redelivered: redelivered,
                    exchange: "", routingKey: "r", properties: Properties(messageID: id),
                    body: .bytes(Array(body.utf8))))
        }
        #expect(key("x") == key("x", true))
        #expect(Set([key("x"), key("y"), key("x", id: "1"), key("x", id: "2"), key("")]).count == 5)
    }
}
