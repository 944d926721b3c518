import AMQP
import Contract
import RoomCore
import Testing

@testable import Scheduler

@Suite("Firing")
struct FiringTests {
    @Test("At the instant and not before, window by window, to the end")
    func onTime() throws {
        let bench = try SchedulerBench.ready(["r": [3_000_000, 3_300_000, 3_600_000]])
        bench.pass(3_700_000)
        #expect(bench.fired("r") == [3_000_000, 3_300_000, 3_600_000])
        #expect(bench.announced("r") == [3_000_001, 3_300_001, 3_600_001])
        #expect(bench.scheduler.agenda.count == 0)
    }

    @Test("Never sleeps longer than a second, and wakes no more often than it must")
    func sleep() throws {
        let bench = try SchedulerBench.ready(["r": [3_000_000]])
        bench.forget()
        bench.pass(100_000)
        #expect(bench.longestWait == 1_000)
        // One a second, and two for each of the three snapshots.
        #expect(bench.runs <= 108)
    }

    @Test("An event is learnt from at once: a session of a moment is fired at its end")
    func learnsFromEvents() throws {
        let bench = try SchedulerBench.ready()
        bench.worker.rooms["new"] = WorkerDouble.Known(sequence: 3, dues: [SchedulerBench.noon + 1_700])
        bench.handle(.event("new", 3, dueAt: SchedulerBench.noon + 1_700))
        bench.pass(5_000)
        #expect(bench.fired("new") == [1_700])
    }

    @Test("Many rooms share a tick: at most 500 of them, and 64 KiB")
    func manyRooms() throws {
        let rooms = (0..<1_234).map { RoomID("room-\($0)") }
        let bench = try SchedulerBench.ready(
            Dictionary(uniqueKeysWithValues: rooms.map { ($0, [60_000]) }))
        bench.pass(60_000)
        #expect(bench.ticks.map(\.rooms.count).sorted() == [234, 500, 500])
        #expect(bench.worker.announced.count == 1_234)

        let long = (0..<1_000).map { RoomID(String(repeating: "x", count: 120) + "\($0)") }
        let other = try SchedulerBench.ready(
            Dictionary(uniqueKeysWithValues: long.map { ($0, [60_000]) }))
        other.pass(60_000)
        #expect(other.ticks.flatMap(\.rooms).count == 1_000)
        #expect(other.ticks.allSatisfy { $0.encode().count <= 65_536 && $0.rooms.count <= 500 })
    }

    @Test("A tick that nobody answers is fired again after 2, 4, 8, 16, 30 s; the answer ends it")
    func firedAgain() throws {
        let bench = try SchedulerBench.ready(["r": [60_000]])
        bench.latency = nil
        bench.pass(150_000)
        #expect(bench.fired("r") == [60_000, 62_000, 66_000, 74_000, 90_000, 120_000, 150_000])
        bench.latency = 2
        bench.pass(60_000)
        #expect(bench.announced("r").count == 1)
        #expect(bench.fired("r").count == 8)
    }

    @Test("That ticks stay unanswered is said once, after three of a room, and when they are answered again")
    func unanswered() throws {
        let bench = try SchedulerBench.ready(["a": [60_000], "b": [60_000], "late": [75_000]])
        bench.latency = nil
        bench.pass(72_900)
        #expect(bench.logFile.lines(containing: "unanswered").isEmpty)
        bench.pass(200_000)
        let said = bench.logFile.lines(containing: "ticks stay unanswered")
        #expect(said.count == 1)
        let since = TimeText.text(Instant(milliseconds: SchedulerBench.noon + 60_000))
        #expect(said.first?.contains("rooms=2") == true && said.first?.contains(since) == true, "\(said)")
        #expect(bench.logFile.lines(containing: "ticks are answered").isEmpty)
        bench.latency = 2
        bench.pass(40_000)
        #expect(bench.logFile.lines(containing: "all ticks are answered again").count == 1)
        #expect(bench.scheduler.agenda.unanswered == 0)

        bench.latency = nil
        bench.handle(.event("a", 9, dueAt: SchedulerBench.noon + 400_000))
        bench.pass(200_000)
        #expect(bench.logFile.lines(containing: "ticks stay unanswered").count == 2)
        bench.handle(.event("a", 10, dueAt: nil))
        bench.pass(1_000)
        #expect(bench.logFile.lines(containing: "all ticks are answered again").count == 2)
    }

    @Test("A room that is put off again and again, with an answer each time, is not fired in vain")
    func putOff() {
        var agenda = Agenda()
        agenda.learn(room: "r", sequence: 1, dueAt: Instant(milliseconds: 1_000))
        for uptime in stride(from: 1_000, to: 20_000, by: 1_000) as StrideTo<Int64> {
            #expect(agenda.takeDue(workerNow: 5_000, uptime: uptime, limit: 9) == ["r"])
            agenda.learnAnswer(
                room: "r", sequence: 1, dueAt: Instant(milliseconds: 1_000), serverTime: 0, workerNow: 5_000,
                uptime: uptime)
        }
        #expect(agenda.unanswered == 0)
    }

    @Test("Ticks ask for an answer, on a correlation of their own, transient")
    func properties() throws {
        let bench = try SchedulerBench.ready(["a": [60_000], "b": [61_000]])
        bench.pass(62_000)
        let sent = bench.sent.map(\.publication)
        #expect(sent.allSatisfy { $0.properties.replyTo == "overtime.own.scheduler.x" })
        #expect(Set(sent.map(\.properties.correlationID)).count == sent.count)
        #expect(sent.allSatisfy { $0.properties.deliveryMode == 1 })
        #expect(Set(bench.sent.filter { $0.tick != nil }.map(\.publication.exchange)) == ["overtime.ticks"])
    }

    @Test("Without a connection nothing is fired, and what came due meanwhile is fired when it is back")
    func withoutConnection() throws {
        let bench = try SchedulerBench.ready(["r": [60_000]])
        bench.losePublisher()
        bench.pass(120_000)
        #expect(bench.fired("r") == [])
        bench.connectPublisher()
        bench.pass(1_000)
        #expect(bench.announced("r").count == 1)
        #expect(bench.sent.last?.generation == 2)
    }

    @Test("While blocked nothing piles up; afterwards it is fired at once")
    func blocked() throws {
        let bench = try SchedulerBench.ready(["r": [60_000]])
        bench.forget()
        bench.latency = nil
        bench.handle(.publisher(.blocked(reason: "memory")))
        bench.pass(3_600_000)
        #expect(bench.sent.isEmpty)
        bench.latency = 2
        bench.handle(.publisher(.unblocked))
        bench.pass(1_000)
        #expect(bench.announced("r").count == 1)

        let other = try SchedulerBench.ready(["r": [60_000]])
        other.handle(.publisher(.blocked(reason: "memory")))
        other.losePublisher()
        other.connectPublisher()
        other.pass(61_000)
        #expect(other.announced("r").count == 1, "a block ends with its connection")
    }

    @Test("Garbage on any queue is no reason for anything", arguments: 0..<3)
    func garbage(channel: Int) throws {
        let bench = try SchedulerBench.ready(["r": [60_000]])
        for body in ["", "{}", "[]", "%", #"{"type":"session.ended","sequence":"0","data":{"room":"r"}}"#] {
            for correlation in [nil, "1", "999", "x"] as [ShortString?] {
                bench.handle(.delivery(channel, Array(body.utf8), correlation: correlation))
            }
        }
        bench.pass(61_000)
        #expect(bench.fired("r") == [60_000])
    }

    @Test("A stop is a stop")
    func stop() throws {
        let bench = try SchedulerBench.ready()
        bench.handle(.stop)
        #expect(bench.scheduler.isStopped)
    }
}
