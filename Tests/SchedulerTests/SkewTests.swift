import Contract
import RoomCore
import Testing

@testable import Scheduler

@Suite("Clocks that disagree")
struct SkewTests {
    @Test(
        "The worker's clock counts: fired at its instant, whatever this one says",
        arguments: [-90_000, -5_000, -300, 300, 5_000, 90_000] as [Int64], [2, 400, 3_000] as [Int64])
    func offset(skew: Int64, latency: Int64) throws {
        let bench = try SchedulerBench()
        bench.worker.skew = skew
        bench.latency = latency
        // By the worker's clock, from ten minutes ahead of both on.
        let due = SchedulerBench.noon + 600_000
        bench.worker.rooms["r"] = WorkerDouble.Known(sequence: 3, dues: [due, due + 300_000])
        bench.connect()
        bench.forget()
        bench.pass(1_100_000)
        let announced = bench.announced("r")
        #expect(announced.count == 2)
        for (at, due) in zip(announced, [600_000, 900_000] as [Int64]) {
            #expect(at >= due, "the worker announces nothing early")
            #expect(at <= due + 2 * latency + 50, "late by \(at - due) ms")
        }
        #expect(bench.worker.ticks < 40, "no hot loop: \(bench.worker.ticks) ticks")
        #expect(bench.runs < 3_000)
    }

    @Test("A slow worker whose clock is behind is not flooded with ticks", arguments: [1, 200])
    func noFlood(rooms: Int) throws {
        let bench = try SchedulerBench()
        bench.worker.skew = -90_000
        bench.latency = 6_000
        for number in 0..<rooms {
            bench.worker.rooms[RoomID("r\(number)")] = WorkerDouble.Known(
                sequence: 3, dues: [SchedulerBench.noon + 60_000])
        }
        bench.connect()
        bench.pass(200_000)
        #expect(bench.worker.announced.count == rooms)
        #expect(bench.worker.ticks < 40 + rooms / 4, "\(bench.worker.ticks) ticks")
    }

    @Test("An hour back: said once, nothing is announced twice or early")
    func backwards() throws {
        let bench = try SchedulerBench.ready(["r": [3_000_000, 3_300_000], "old": [60_000, 9_000_000]])
        bench.pass(100_000)
        bench.clock.advance(-3_600_000)
        bench.pass(60_000)
        #expect(bench.logFile.lines(containing: "stepped").count == 1)
        #expect(bench.fired("old").count == 1)
        bench.pass(3_600_000 + 3_200_000)
        #expect(bench.announced("r").count == 2)
        #expect(bench.announced("old").count == 1)
        #expect(bench.fired("r") == [3_000_000, 3_300_000])
    }

    @Test("A month forwards: everything due is fired, in bounded ticks, once")
    func forwards() throws {
        let count = 5_000
        let bench = try SchedulerBench.ready(
            Dictionary(uniqueKeysWithValues: (0..<count).map { (RoomID("r\($0)"), [3_000_000, 3_600_000]) }))
        bench.forget()
        bench.clock.advance(30 * 24 * 3_600_000)
        bench.pass(5_000)
        #expect(bench.logFile.lines(containing: "stepped").count == 1)
        #expect(bench.worker.announced.count == count)
        #expect(bench.ticks.allSatisfy { $0.rooms.count <= 500 })
        #expect(bench.ticks.count <= 3 * count / 500)
    }

    @Test(
        "Only this clock is stepped: the next answer tells, and windows stay on time",
        arguments: [-3_600_000, 3_600_000] as [Int64])
    func onlyOurs(step: Int64) throws {
        let bench = try SchedulerBench.ready(["r": [600_000, 1_200_000]])
        bench.pass(10_000)
        bench.clock.advance(step)
        bench.worker.skew = -step
        bench.pass(1_300_000)
        #expect(bench.announced("r").count == 2)
        // The worker's clock went on as ever; the snapshot after the step brings the offset.
        for (at, due) in zip(bench.announced("r"), [600_000, 1_200_000] as [Int64]) {
            #expect(at >= due && at < due + 100)
        }
    }

    @Test("A question that is under way when the clock is stepped teaches nothing wrong")
    func stepUnderWay() throws {
        let bench = try SchedulerBench.ready(["r": [600_000]])
        bench.latency = 1_000
        bench.worker.rooms["x"] = WorkerDouble.Known(sequence: 1, dues: [])
        bench.handle(.event("x", 1, dueAt: SchedulerBench.noon))
        bench.pass(300)
        bench.clock.advance(3_600_000)
        bench.worker.skew = -3_600_000
        bench.latency = 2
        bench.pass(1_200_000)
        #expect(bench.announced("r").allSatisfy { $0 < 600_100 })
        #expect(bench.worker.ticks < 20)
    }

    @Test("A worker's clock that is wrong for a second costs its windows two seconds, not thirty")
    func wrongForAMoment() throws {
        let bench = try SchedulerBench.ready(["r": [600_000, 606_000, 612_000]])
        bench.pass(SchedulerBench.noon + 599_500 - bench.clock.nowMilliseconds())
        bench.worker.skew = -3_600_000
        bench.pass(1_000)
        bench.worker.skew = 0
        bench.pass(30_000)
        let announced = bench.announced("r")
        try #require(announced.count == 3)
        #expect(announced[0] >= 600_500 && announced[0] < 602_600, "\(announced)")
        #expect(announced[1] < 606_100 && announced[2] < 612_100)
        #expect(bench.worker.ticks < 20)
    }
}
