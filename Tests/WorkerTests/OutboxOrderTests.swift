import RoomCore
import Store
import Testing

@testable import Worker

@Suite("The outbox's publisher keeps each room's order")
struct OutboxOrderTests {
    @Test("Events go out in outbox order and leave when they are confirmed")
    func plainOrder() {
        let bench = OutboxBench()
        bench.add("a b a c b")
        #expect(bench.sent() == ["a1", "a2", "b1", "b2", "c1"])
        bench.confirm("b1 a1 c1 a2 b2")
        #expect(bench.finished.sorted() == [1, 2, 3, 4, 5])
        #expect(bench.settled.sorted() == [1, 2, 3, 4, 5])
        #expect(bench.outbox.held == 0)
        #expect(bench.sent() == [])
    }

    @Test("A confirm settles its job at once, but the event leaves behind those before it")
    func confirmedBehindUnconfirmed() {
        let bench = OutboxBench()
        bench.add("a a a")
        _ = bench.sent()
        bench.confirm("a2 a3")
        #expect(bench.settled == [2, 3])
        #expect(bench.finished == [])
        bench.confirm("a1")
        #expect(bench.finished == [1, 2, 3])
    }

    @Test("A lost channel sends everything from the first unconfirmed on again, in order")
    func lostChannel() {
        let bench = OutboxBench()
        bench.add("a a a b")
        let first = bench.send()
        bench.confirm("a1 a3")
        bench.lose()
        let again = bench.send()
        #expect(again.map(\.event.draft.messageID) == ["a2", "a3", "b1"])
        for copy in again { #expect(first.map(\.event).contains(copy.event), "copies are identical") }
        bench.confirm("a2 a3 b1")
        #expect(bench.outbox.held == 0)
        #expect(bench.settled.sorted() == [1, 2, 3, 4], "a job is settled once, however many copies")
    }

    @Test("A lost channel again and again loses and reorders nothing")
    func lostManyTimes() {
        let bench = OutboxBench()
        bench.add("a b a")
        for _ in 0..<5 {
            #expect(bench.sent() == ["a1", "a2", "b1"])
            bench.lose()
        }
    }

    @Test("Without a confirm for ten seconds a room is sent again, then after 20, 40, 80 and 80")
    func missingConfirm() {
        let bench = OutboxBench()
        bench.add("a a b")
        #expect(bench.sent() == ["a1", "a2", "b1"])
        bench.confirm("a2 b1")
        for delay in [10, 20, 40, 80, 80] as [Int64] {
            bench.pass(delay * 1_000 - 1_000)
            #expect(bench.sent() == [])
            bench.pass(1_500)
            #expect(bench.sent() == ["a1", "a2"])
        }
        #expect(bench.overdueRooms == Array(repeating: "a", count: 5))
    }

    @Test("A late confirm of an older number counts")
    func lateConfirm() {
        let bench = OutboxBench()
        bench.add("a a")
        _ = bench.sent()
        bench.pass(10_500)
        #expect(bench.sent() == ["a1", "a2"])
        bench.confirm("a1 a2", copy: 1)
        #expect(bench.finished == [1, 2])
        bench.confirm("a1 a2", copy: 2)
        #expect(bench.finished == [1, 2])
        #expect(bench.outbox.held == 0)
    }

    @Test("No more than the bound is on its way, one room's events among them")
    func inFlightBound() {
        let bench = OutboxBench { $0.inFlight = 3 }
        bench.add("a a a a a b")
        #expect(bench.sent() == ["a1", "a2", "a3"])
        #expect(bench.sent() == [])
        bench.confirm("a1")
        #expect(bench.sent() == ["a4"])
        bench.confirm("a2 a3 a4")
        #expect(bench.sent() == ["a5", "b1"])
    }

    @Test("A broker that stays silent at the bound is asked again, and numbers without an end do not pile up")
    func silentAtTheBound() {
        let bench = OutboxBench { $0.inFlight = 2 }
        bench.add("a b c")
        #expect(bench.sent() == ["a1", "b1"])
        for _ in 0..<50 {
            bench.pass(80_500)
            #expect(bench.sent().count == 2)
        }
        #expect(bench.outbox.inFlightCount <= 2)
        bench.confirm("a1 b1 c1")
        for _ in 0..<5 where bench.outbox.held > 0 {
            for name in bench.sent() { bench.confirm(name) }
        }
        #expect(bench.outbox.held == 0)
        #expect(bench.outbox.inFlightCount == 0)
    }

    @Test("The first event of a room that was sent once more does not overtake")
    func newBehindOld() {
        let bench = OutboxBench()
        bench.add("a")
        _ = bench.sent()
        bench.lose()
        bench.add("a")
        #expect(bench.sent() == ["a1", "a2"])
    }
}
