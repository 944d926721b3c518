import RoomCore
import Testing

@testable import Worker

@Suite("A refusal holds back its room only, and not for ever")
struct OutboxRefusalTests {
    @Test(
        "Later events of the room wait, other rooms go on, and nobody's delivery waits for what is held back")
    func holdsBackItsRoom() {
        let bench = OutboxBench()
        bench.add("a b")
        _ = bench.sent()
        bench.refuse("a1")
        bench.add("a b a")
        #expect(bench.sent() == ["b2"])
        bench.collect()
        #expect(bench.settled.sorted() == [1, 3, 5])
        #expect(bench.refusedRooms == ["a"])
    }

    @Test("The first is tried again each second until it is confirmed; then the others follow in order")
    func retriedEachSecond() {
        let bench = OutboxBench()
        bench.add("a a a")
        _ = bench.sent()
        bench.refuse("a1 a2 a3")
        for _ in 0..<5 {
            bench.pass(500)
            #expect(bench.sent() == [])
            bench.pass(500)
            #expect(bench.sent() == ["a1"])
            bench.refuse("a1")
        }
        bench.pass(1_000)
        #expect(bench.sent() == ["a1"])
        bench.confirm("a1")
        #expect(bench.sent() == ["a2", "a3"])
        #expect(bench.refusedRooms == ["a"], "said once")
        bench.confirm("a2 a3")
        #expect(bench.outbox.held == 0)
        #expect(bench.passedOver == [])
    }

    @Test("After 60 seconds it is passed over; later ones get one try each while refusals last")
    func passedOver() {
        let bench = OutboxBench()
        bench.add("a")
        _ = bench.sent()
        bench.refuse("a1")
        bench.add("a a")
        var tries = 0
        for _ in 0..<59 {
            bench.pass(1_000)
            tries += bench.sent().count
            bench.refuse("a1")
        }
        #expect(tries == 59)
        #expect(bench.passedOver == [])
        bench.pass(1_000)
        #expect(bench.passedOver == ["a1"])
        #expect(bench.sent() == ["a2"])
        bench.refuse("a2")
        #expect(bench.sent() == ["a3"])
        bench.refuse("a3")
        #expect(bench.passedOver == ["a1", "a2", "a3"])
        #expect(bench.finished == [1, 2, 3])
        #expect(bench.outbox.held == 0)
        bench.add("a")
        #expect(bench.sent() == ["a4"], "one try")
        bench.refuse("a4")
        #expect(bench.passedOver.last == "a4")
    }

    @Test("A confirm ends it: the next refusal has its 60 seconds again")
    func aConfirmEndsIt() {
        let bench = OutboxBench()
        bench.add("a")
        _ = bench.sent()
        bench.refuse("a1")
        bench.pass(60_000)
        bench.add("a a")
        #expect(bench.sent() == ["a2"])
        bench.confirm("a2")
        #expect(bench.sent() == ["a3"])
        bench.refuse("a3")
        bench.pass(59_000)
        #expect(bench.passedOver == ["a1"])
    }

    @Test("Refusals that were ten minutes ago are forgotten")
    func forgotten() {
        let bench = OutboxBench()
        bench.add("a")
        _ = bench.sent()
        bench.refuse("a1")
        bench.pass(60_000)
        #expect(bench.passedOver == ["a1"])
        bench.pass(600_000)
        bench.add("a a")
        #expect(bench.sent() == ["a2", "a3"])
    }

    @Test("What was confirmed behind a refused one leaves with it and is never called passed over")
    func confirmedBehindRefused() {
        let bench = OutboxBench()
        bench.add("a a")
        _ = bench.sent()
        bench.refuse("a1")
        bench.confirm("a2")
        #expect(bench.finished == [])
        bench.pass(60_000)
        #expect(bench.finished == [1, 2])
        #expect(bench.passedOver == ["a1"])
    }

    @Test("Behind a refused one nobody waits for what a lost channel or a missing confirm held back")
    func heldBackAfterALoss() {
        let bench = OutboxBench()
        bench.add("a a")
        _ = bench.sent()
        bench.refuse("a1")
        bench.lose()
        bench.collect()
        #expect(bench.settled.sorted() == [1, 2])

        let other = OutboxBench()
        other.add("a a")
        _ = other.sent()
        other.refuse("a1")
        for _ in 0..<20 {
            other.pass(1_000)
            _ = other.sent()
            other.refuse("a1")
        }
        #expect(other.settled.sorted() == [1, 2])
    }

    @Test("A refused event gets another try on a new channel before it is passed over")
    func triedOnTheNewChannel() {
        let bench = OutboxBench()
        bench.add("a")
        _ = bench.sent()
        bench.refuse("a1")
        bench.lose()
        bench.now += 120_000
        #expect(bench.sent() == ["a1"])
        bench.outbox.tick(at: bench.now)
        bench.collect()
        #expect(bench.passedOver == [])
        bench.confirm("a1")
        #expect(bench.outbox.held == 0)
    }

    @Test("A late refusal of an older copy does not undo a confirm")
    func lateRefusal() {
        let bench = OutboxBench()
        bench.add("a a")
        _ = bench.sent()
        bench.pass(10_500)
        _ = bench.sent()
        bench.confirm("a2", copy: 2)
        bench.outbox.refused([bench.number("a2", copy: 1)], at: bench.now)
        bench.collect()
        #expect(bench.refusedRooms == [])
        bench.confirm("a1")
        #expect(bench.finished == [1, 2])
    }

    @Test("Rooms that are refused are no reason to wait at a stop")
    func quiet() {
        let bench = OutboxBench()
        #expect(bench.outbox.isQuiet)
        bench.add("a b")
        _ = bench.sent()
        #expect(!bench.outbox.isQuiet)
        bench.refuse("a1")
        bench.confirm("b1")
        #expect(bench.outbox.isQuiet)
    }

    @Test("Tens of thousands of events behind a refused one cost no more than one each")
    func manyHeldBack() {
        // Eight times as many cost eight times as much; each looking at all before it, they would cost 64 times as much.
        let ratio = Growth.ratio(small: 1_000, large: 8_000) { count in
            let bench = OutboxBench()
            bench.add("a")
            _ = bench.sent()
            bench.refuse("a1")
            for _ in 0..<count { bench.add("a") }
            #expect(bench.outbox.held == count + 1)
        }
        #expect(ratio < 24)
    }
}
