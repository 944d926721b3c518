import AMQP
import Contract
import RoomCore
import Testing

@testable import Scheduler

@Suite("Several schedulers")
struct StandbyTests {
    /// One that has just heard an elder.
    private func standby(_ rooms: [RoomID: [Int64]]) throws -> SchedulerBench {
        let bench = try SchedulerBench.ready(id: "m", rooms)
        bench.handle(.tick("a", ["elsewhere"]))
        return bench
    }

    @Test("The younger waits 100 ms and drops what it sees the elder fire")
    func dropped() throws {
        let bench = try standby(["r": [30_000], "s": [30_000]])
        bench.pass(30_050 - 1_000)
        #expect(bench.ticks.isEmpty)
        bench.worker.rooms["r"] = nil
        bench.handle(.tick("a", ["r"]))
        bench.pass(60)
        #expect(bench.fired("r") == [])
        #expect(bench.fired("s") == [30_100])
    }

    @Test("Each room has its 100 ms, also one that comes due while others are held back")
    func eachRoom() throws {
        let bench = try standby(["r": [30_000], "s": [30_090]])
        bench.pass(29_500)
        #expect(bench.fired("r") == [30_100])
        #expect(bench.fired("s") == [30_190])
    }

    @Test("An elder that has been silent for a minute is waited for no more")
    func silentElder() throws {
        let bench = try standby(["r": [55_000], "s": [90_000]])
        bench.pass(95_000)
        #expect(bench.fired("r") == [55_100])
        #expect(bench.fired("s") == [90_000])
    }

    @Test("Who has the smallest id waits for nobody; one's own ticks are not others'")
    func elder() throws {
        let bench = try SchedulerBench.ready(id: "m", ["r": [30_000]])
        bench.handle(.tick("z", ["elsewhere"]))
        bench.handle(.tick("m", ["elsewhere"]))
        bench.pass(30_000)
        #expect(bench.fired("r") == [30_000])
    }

    @Test("What an elder fired and nobody answered is fired again two seconds later")
    func elderDies() throws {
        let bench = try standby(["r": [30_000]])
        bench.pass(29_010)
        bench.handle(.tick("a", ["r"]))
        bench.pass(5_000)
        #expect(bench.fired("r") == [32_100])
        #expect(bench.announced("r").count == 1)
    }

    @Test("Who waits for an elder listens to the events of windows, and for no longer")
    func windows() throws {
        let bench = try SchedulerBench.ready(id: "m", ["r": [120_000]])
        #expect(bench.followed == [])
        bench.handle(.tick("a", ["elsewhere"]))
        bench.pass(1_000)
        #expect(bench.followed == [true])
        let queries = bench.queries.count
        bench.handle(.consumer(.channelOpened(SchedulerChannel.windows, generation: 1)))
        bench.pass(100)
        #expect(bench.queries.count == queries + 1, "what was missed is in the snapshot")
        let due = SchedulerBench.noon + 20_000
        bench.worker.rooms["r"] = WorkerDouble.Known(sequence: 4, dues: [due])
        bench.handle(.window("r", 4, dueAt: due))
        bench.pass(25_000)
        #expect(bench.fired("r") == [20_100])
        bench.pass(40_000)
        #expect(bench.followed == [true, false])
    }

    @Test("A younger one's tick puts nothing off: its answer goes to the younger one alone")
    func younger() throws {
        let bench = try SchedulerBench.ready(id: "m", ["r": [30_000]])
        bench.pass(28_900)
        bench.handle(.tick("z", ["r"]))
        bench.pass(1_000)
        #expect(bench.fired("r") == [30_000])
        #expect(bench.followed == [])
    }

    @Test("Exchanges that were made anew are bound to by both queues")
    func windowsAgain() throws {
        let bench = try standby([:])
        bench.pass(10)
        bench.handle(.consumer(.channelOpened(SchedulerChannel.windows, generation: 1)))
        bench.handle(
            .consumer(.channelClosed(SchedulerChannel.events, generation: 1, nil, unknown: [])),
            .consumer(.channelOpened(SchedulerChannel.events, generation: 2)))
        #expect(bench.followed == [true, false, true])
    }

    @Test("A stranger who ticks rooms that are not due delays none")
    func stranger() throws {
        let bench = try SchedulerBench.ready(id: "m", ["r": [30_000]])
        for _ in 0..<10 {
            bench.handle(.tick("z", ["r"]))
            bench.pass(1_000)
        }
        bench.pass(20_000)
        #expect(bench.fired("r") == [30_000])
    }

    @Test("A connection lost while rooms are held back loses none of them")
    func lostWhileHeldBack() throws {
        let bench = try standby(["r": [30_000]])
        bench.pass(29_050)
        bench.losePublisher()
        bench.pass(1_000)
        bench.connectPublisher()
        bench.pass(3_000)
        #expect(bench.announced("r").count == 1)
    }
}
