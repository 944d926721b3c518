import Metrics
import RoomCore
import Testing

@testable import Scheduler

@Suite("The agenda")
struct AgendaTests {
    /// An agenda as a reference, with a clock of the worker's and a monotonic one that go together.
    final class Rig {
        var agenda = Agenda()
        var now: Int64 = 0

        func event(_ room: RoomID, _ sequence: Int64, at: Int64?) {
            agenda.learn(room: room, sequence: sequence, dueAt: at.map(Instant.init(milliseconds:)))
        }
        func row(_ room: RoomID, _ sequence: Int64, at: Int64?) {
            agenda.learnSnapshot(room: room, sequence: sequence, dueAt: at.map(Instant.init(milliseconds:)))
        }
        func idle(_ room: RoomID, _ sequence: Int64, at: Int64?) {
            agenda.learnAnswer(
                room: room, sequence: sequence, dueAt: at.map(Instant.init(milliseconds:)), serverTime: now,
                workerNow: now, uptime: now)
        }
        func due(_ now: Int64, limit: Int = 100) -> [RoomID] {
            self.now = now
            return agenda.takeDue(workerNow: now, uptime: now, limit: limit)
        }
        var wait: Int64? { agenda.wait(workerNow: now, uptime: now) }
    }

    @Test(
        "Rooms count as overdue from their firing until a newer state is seen, and how late they were is kept"
    )
    func overdue() {
        let rig = Rig()
        rig.event("a", 1, at: 1_000)
        rig.event("b", 1, at: 1_000)
        rig.event("c", 1, at: 9_000)
        #expect(rig.agenda.overdue == 0)
        #expect(rig.due(1_400).count == 2)
        #expect(rig.agenda.overdue == 2)
        // A second firing makes it neither more overdue nor later.
        #expect(rig.due(3_400).count == 2)
        #expect(rig.agenda.overdue == 2)
        #expect(rig.agenda.lateness.count == 2)
        #expect(abs(rig.agenda.lateness.sum - 0.8) < 1e-9)
        rig.event("a", 2, at: 5_000)
        #expect(rig.agenda.overdue == 1)
        rig.event("b", 2, at: nil)
        #expect(rig.agenda.overdue == 0)
        #expect(rig.due(5_000) == ["a"])
        rig.idle("a", 2, at: nil)
        #expect((rig.agenda.overdue, rig.agenda.count) == (0, 1))
    }

    @Test("Is due at the instant and not before; then again after 2, 4, 8, 16, 30 and 30 seconds")
    func retries() {
        let rig = Rig()
        rig.event("a", 1, at: 1_000)
        #expect(rig.due(999) == [])
        #expect(rig.wait == 1)
        #expect(rig.due(1_000) == ["a"])
        var at: Int64 = 1_000
        for delay in [2, 4, 8, 16, 30, 30, 30] as [Int64] {
            #expect(rig.wait == delay * 1_000)
            #expect(rig.due(at + delay * 1_000 - 1) == [])
            at += delay * 1_000
            #expect(rig.due(at) == ["a"])
        }
    }

    @Test("An event with a lower sequence than what is known is old")
    func oldEvents() {
        let rig = Rig()
        rig.event("a", 5, at: 9_000)
        rig.event("a", 4, at: 1_000)
        rig.event("a", 3, at: nil)
        #expect(rig.agenda.count == 1)
        #expect(rig.due(8_999) == [])
        #expect(rig.due(9_000) == ["a"])
    }

    @Test("A newer event ends the retries, an end removes the room")
    func newerEvents() {
        let rig = Rig()
        rig.event("a", 1, at: 1_000)
        _ = rig.due(1_000)
        rig.event("a", 2, at: 60_000)
        #expect(rig.due(59_999) == [])
        #expect(rig.due(60_000) == ["a"])
        rig.event("a", 3, at: nil)
        #expect(rig.agenda.count == 0)
        #expect(rig.due(.max / 2) == [])
    }

    @Test(
        "Of event and snapshot the higher sequence counts, and of equal ones what is in hand",
        arguments: [(event: 5, row: 4, due: 1_000), (5, 5, 1_000), (5, 6, 2_000)] as [(Int64, Int64, Int64)])
    func eventAndSnapshot(_ event: Int64, _ row: Int64, _ due: Int64) {
        for eventFirst in [true, false] {
            let rig = Rig()
            rig.agenda.beginSnapshot()
            if eventFirst { rig.event("a", event, at: 1_000) }
            rig.row("a", row, at: 2_000)
            if !eventFirst { rig.event("a", event, at: 1_000) }
            rig.agenda.endSnapshot()
            // An event that is as new as the row says the same or better.
            #expect(rig.due(due - 1) == [])
            #expect(rig.due(due) == ["a"])
        }
    }

    @Test("A snapshot does not fire again what was fired, nor revive what ended meanwhile")
    func snapshotIsOlder() {
        let rig = Rig()
        rig.event("a", 3, at: 1_000)
        _ = rig.due(1_000)
        rig.agenda.beginSnapshot()
        rig.row("a", 3, at: 1_000)
        #expect(rig.due(1_001) == [])
        rig.event("b", 7, at: nil)
        rig.row("b", 6, at: 500)
        #expect(rig.due(1_002) == [])
        rig.row("b", 8, at: 500)
        #expect(rig.due(1_003) == ["b"], "the next session is another matter")
        rig.agenda.endSnapshot()
    }

    @Test("A waiting room has no instant; a room fired on and gone is forgotten by its answer")
    func withoutInstant() {
        let rig = Rig()
        rig.row("w", 2, at: nil)
        #expect(rig.agenda.count == 0)
        rig.event("a", 3, at: 100)
        _ = rig.due(100)
        rig.idle("a", 4, at: nil)
        #expect(rig.agenda.count == 0)
        #expect(rig.wait == 2_000, "only a stale alarm")
        #expect(rig.due(2_100) == [])
        #expect(rig.wait == nil)
    }

    @Test("An answer that nothing is due re-arms and is no retry")
    func idle() {
        let rig = Rig()
        rig.event("a", 3, at: 100)
        _ = rig.due(100)
        rig.idle("a", 3, at: 5_000)
        #expect(rig.due(4_999) == [])
        #expect(rig.due(5_000) == ["a"])
        #expect(rig.wait == 2_000)
        rig.idle("a", 2, at: 100_000)
        #expect(rig.due(7_000) == ["a"], "an older answer counts for nothing")
    }

    @Test(
        "A worker that says nothing was due at an instant it calls past is asked no more often than the silent one"
    )
    func contradiction() {
        let rig = Rig()
        rig.event("a", 3, at: 100)
        var times = 0
        for now in stride(from: 100, to: 60_000, by: 10) as StrideTo<Int64> {
            guard rig.due(now) == ["a"] else { continue }
            times += 1
            rig.idle("a", 3, at: 100)
        }
        #expect(times == 5)
    }

    @Test("What somebody else fired counts as fired here, if it was due")
    func firedElsewhere() {
        let rig = Rig()
        rig.event("a", 3, at: 1_000)
        rig.event("b", 3, at: 60_000)
        rig.agenda.noteFired(["a", "b", "unknown"], workerNow: 900, uptime: 900)
        #expect(rig.due(2_800) == [])
        #expect(rig.due(2_900) == ["a"])
        #expect(rig.due(60_000).contains("b"))
    }

    @Test("Takes no more than asked, and the rest afterwards")
    func limit() {
        let rig = Rig()
        for number in 0..<25 { rig.event(RoomID("r\(number)"), 1, at: 100) }
        let parts = (0..<4).map { _ in rig.due(100, limit: 10).count }
        #expect(parts == [10, 10, 5, 0])
    }

    @Test("Sessions that end long before their time leave nothing behind")
    func staleAlarms() {
        let rig = Rig()
        for number in 0..<50_000 {
            let room = RoomID("r\(number)")
            rig.event(room, 1, at: 31_622_400_000)
            rig.event(room, 2, at: nil)
        }
        #expect(rig.agenda.count == 0)
        #expect(rig.agenda.alarmCount < 5_000)
        for number in 0..<100 { rig.event(RoomID("live\(number)"), 1, at: 1_000) }
        #expect(rig.due(1_000, limit: 1_000).count == 100)
    }
}
