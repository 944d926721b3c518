import Service
import Testing

@testable import Scheduler

@Suite("Clocks that differ and clocks that jump")
struct ClockTests {
    @Test(
        "The offset is the value nearest zero that the last answers allow",
        arguments: [
            (answers: [(0, -5, 5)], offset: 0),
            (answers: [(90_000, -10, 10)], offset: 89_990),
            (answers: [(-90_000, -10, 10)], offset: -89_990),
            (answers: [(90_000, -1_000, 1_000), (90_000, -10, 10)], offset: 89_990),
            (answers: [(90_000, -10, 10), (90_000, -1_000, 1_000)], offset: 89_990),
            (answers: [(500, 0, 3_000)], offset: 0),
        ] as [(answers: [(Int64, Int64, Int64)], offset: Int64)])
    func nearestZero(_ answers: [(Int64, Int64, Int64)], _ offset: Int64) {
        var clock = ClockOffset()
        for (serverTime, sent, received) in answers {
            _ = clock.learn(serverTime: serverTime, sent: sent, received: received)
        }
        #expect(clock.milliseconds == offset)
    }

    @Test("A slow answer never shifts clocks that are equal", arguments: [0, 1, 900, 60_000] as [Int64])
    func slow(delay: Int64) {
        var clock = ClockOffset()
        for server in [0, delay / 2, delay] {
            _ = clock.learn(serverTime: 1_000 + server, sent: 1_000, received: 1_000 + delay)
            #expect(clock.milliseconds == 0)
        }
    }

    @Test("Newer answers win over older ones that contradict them")
    func contradiction() {
        var clock = ClockOffset()
        _ = clock.learn(serverTime: 90_000, sent: -10, received: 10)
        _ = clock.learn(serverTime: 0, sent: -10, received: 10)
        #expect(clock.milliseconds == 0)
        _ = clock.learn(serverTime: -50_000, sent: -10, received: 10)
        #expect(clock.milliseconds == -49_990)
    }

    @Test("No more than eight are kept, an answer from before its question is none, and a reset forgets")
    func bounds() {
        var clock = ClockOffset()
        _ = clock.learn(serverTime: 5_000, sent: 10, received: 0)
        #expect(clock.milliseconds == 0)
        _ = clock.learn(serverTime: 1_000, sent: 0, received: 0)
        for _ in 0..<8 { _ = clock.learn(serverTime: 1_000, sent: -500, received: 500) }
        #expect(clock.milliseconds == 500)
        clock.reset()
        #expect(clock.milliseconds == 0)
    }

    @Test("A step is told once, in either direction; a drift is none")
    func steps() {
        var steps = ClockSteps()
        let looks: [(wall: Int64, uptime: Int64)] = [
            (0, 0), (1_000, 1_000), (2_400, 2_000), (3_400, 3_000), (3_603_400, 4_000), (3_604_400, 5_000),
            (4_400, 6_000), (5_400, 7_000),
        ]
        let told = looks.map { steps.look(wall: $0.wall, uptime: $0.uptime) }
        #expect(told == [nil, nil, nil, nil, 3_599_000, nil, -3_601_000, nil])
    }
}
