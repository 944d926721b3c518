import RoomCore
import Testing

@testable import Worker

@Suite("An event over which the broker closes the channel")
struct OutboxCulpritTests {
    /// One whose event `b1` closes the channel and has just been found, alone, among others of three rooms.
    static func convicted() -> OutboxBench {
        let bench = OutboxBench()
        bench.add("a b c a b")
        _ = bench.sent()
        bench.lose(.message)
        for name in ["a1", "a2"] {
            #expect(bench.sent() == [name])
            #expect(bench.sent() == [])
            bench.confirm(name)
        }
        #expect(bench.sent() == ["b1"])
        bench.lose(.message)
        return bench
    }

    @Test("Is found by sending what was on its way one at a time, and holds back its room only")
    func found() {
        let bench = Self.convicted()
        #expect(bench.convicted == ["b1"])
        #expect(bench.settled.sorted() == [1, 2, 4, 5], "nobody's delivery waits for what is held back")
        bench.add("b a c")
        #expect(bench.sent() == ["c1"])
        bench.confirm("c1")
        #expect(bench.sent().sorted() == ["a3", "c2"])
        bench.confirm("a3 c2")
        bench.pass(59_000)
        #expect(bench.sent() == [], "a try would close the channel for all")
        #expect(bench.passedOver == [] && bench.refusedRooms == [])
        #expect(bench.outbox.isQuiet)
    }

    @Test("After 60 seconds it is tried once more, alone, and passed over; what follows goes on in order")
    func passedOver() {
        let bench = Self.convicted()
        #expect(bench.sent() == ["c1"])
        bench.confirm("c1")
        bench.pass(55_000)
        bench.add("b c")
        #expect(bench.sent() == ["c2"])
        bench.pass(5_000)
        #expect(bench.sent() == [], "behind what is on its way")
        bench.confirm("c2")
        #expect(bench.sent() == ["b1"])
        bench.add("c")
        #expect(bench.sent() == [])
        bench.lose(.message)
        #expect(bench.passedOver == ["b1"])
        #expect(bench.convicted == ["b1"], "said once")
        #expect(bench.sent().sorted() == ["b2", "c3"])
        bench.confirm("c3 b2")
        #expect(bench.sent() == ["b3"])
    }

    @Test("Where the last try is confirmed nothing is lost")
    func takenAfterAll() {
        let bench = Self.convicted()
        _ = bench.sent()
        bench.confirm("c1")
        bench.pass(60_000)
        #expect(bench.sent() == ["b1"])
        bench.confirm("b1")
        #expect(bench.sent() == ["b2"])
        bench.confirm("b2")
        #expect(bench.passedOver == [] && bench.outbox.held == 0)
        #expect(bench.finished.sorted() == [1, 2, 3, 4, 5])
    }

    @Test("Another connection may lead to a broker that takes it: it is tried at once, alone")
    func anotherConnection() {
        let bench = Self.convicted()
        bench.add("a")
        bench.lose(.withConnection)
        #expect(bench.sent() == ["c1"])
        bench.confirm("c1")
        #expect(bench.sent() == ["b1"])
        bench.confirm("b1")
        #expect(bench.sent().sorted() == ["a3", "b2"])
    }

    @Test(
        "A lost connection convicts nobody, nor does an exchange that is closed to all",
        arguments: [ReplyPublisher.Loss.withConnection, .exchange])
    func nobody(loss: ReplyPublisher.Loss) {
        let bench = OutboxBench()
        bench.add("a b")
        for _ in 0..<5 {
            #expect(bench.sent() == ["a1", "b1"])
            bench.lose(loss)
        }
        let alone = Self.convicted()
        for _ in 0..<5 {
            #expect(alone.sent() == ["c1"])
            alone.lose(.exchange)
        }
        #expect(alone.convicted == ["b1"])
    }

    @Test("Each of several costs one close more, in a room's order")
    func several() {
        let bench = OutboxBench()
        bench.add("a b c c d")
        _ = bench.sent()
        var closes = 0
        var delivered: [String] = []
        func broker() {
            for name in bench.sent() {
                guard !["a1", "c2", "d1"].contains(name) else {
                    closes += 1
                    return bench.lose(.message)
                }
                delivered.append(name)
                bench.confirm(name)
            }
        }
        bench.lose(.message)
        for _ in 0..<10 { broker() }
        #expect(closes == 3)
        #expect(bench.convicted == ["a1", "c2", "d1"])
        #expect(delivered == ["b1", "c1"])
        bench.add("a c d")
        bench.pass(60_000)
        for _ in 0..<10 { broker() }
        #expect(closes == 6)
        #expect(bench.passedOver == ["a1", "c2", "d1"])
        #expect(delivered == ["b1", "c1", "a2", "c3", "d2"])
    }

    @Test("A suspect that a queue refuses is none any more, nor is what it holds back")
    func refusedSuspect() {
        let bench = OutboxBench()
        bench.add("a a b")
        _ = bench.sent()
        bench.lose(.message)
        #expect(bench.sent() == ["a1"])
        bench.refuse("a1")
        #expect(bench.sent() == ["b1"])
        bench.lose(.message)
        #expect(bench.convicted == ["b1"])
        bench.pass(1_000)
        #expect(bench.sent() == ["a1"])
        bench.confirm("a1")
        #expect(bench.sent() == ["a2"])
    }

    @Test("Missing confirms and late ends of older copies stop nothing")
    func missingConfirms() {
        let bench = OutboxBench()
        bench.add("a a b")
        _ = bench.sent()
        bench.lose(.message)
        #expect(bench.sent() == ["a1"])
        bench.pass(10_500)
        #expect(bench.sent() == ["a1"])
        bench.outbox.refused([bench.number("a1", copy: 2)], at: bench.now)
        bench.collect()
        #expect(bench.sent() == ["b1"], "the latest copy has no end yet, and is not waited for")
        bench.confirm("b1")
        bench.confirm("a1")
        #expect(bench.sent() == ["a2"])
        bench.confirm("a2")
        #expect(bench.outbox.held == 0 && bench.outbox.inFlightCount == 0)
    }

    @Test("A thousand suspects cost no more than one each")
    func manySuspects() {
        let ratio = Growth.ratio(small: 1_000, large: 4_000) { count in
            let bench = OutboxBench()
            for room in 0..<count { bench.add("r\(room)") }
            var sendings = bench.send()
            bench.lose(.message)
            for _ in 0..<count {
                sendings = bench.send()
                bench.outbox.confirmed(sendings.map(\.id))
            }
            #expect(bench.outbox.held == 0)
        }
        #expect(ratio < 12)
    }
}
