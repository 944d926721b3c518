import Metrics
import RoomCore
import Testing

@testable import Worker

@Suite("What the worker counts")
struct MeterTests {
    private let now = Instant(milliseconds: 1_700_000_000_000)

    @Test(
        "a timestamp is anything that fits into 64 bits, and only a sensible one is an age",
        arguments: [
            (nil, 0), (0, 0), (UInt64.max, 0), (UInt64(Int64.max), 0), (UInt64(Int64.max) / 1_000, 0),
            (1_700_000_000, 1), (1_699_999_993, 1), (1_700_000_005, 1), (1_600_000_000, 0),
        ] as [(UInt64?, Int64)])
    func ages(timestamp: UInt64?, count: Int64) {
        var meters = WorkerMeters()
        meters.noteAge(timestamp: timestamp, now: now)
        meters.noteAge(timestamp: timestamp, now: Instant(milliseconds: .min))
        meters.noteAge(timestamp: timestamp, now: Instant(milliseconds: now.milliseconds))
        #expect(meters.commandAge.counts.dropLast().reduce(0, +) >= 2 * count)
        #expect(meters.commandAge.sum >= 0 && meters.commandAge.sum < 60 * 86_400)
    }

    @Test("commands are counted by kind and outcome, each in a place of its own")
    func commands() {
        var counts = CommandCounts()
        var expected: Int64 = 0
        for kind in CommandKind.allCases {
            for outcome in CommandCounts.Outcome.allCases {
                expected += 1
                for _ in 0..<expected { counts.note(kind, outcome) }
            }
        }
        var sum = CommandCounts()
        sum.add(counts)
        sum.add(counts)
        expected = 0
        for kind in CommandKind.allCases {
            for outcome in CommandCounts.Outcome.allCases {
                expected += 1
                #expect(sum[kind, outcome] == 2 * expected)
            }
        }
    }

    @Test("a publication on a channel that is not measured is nobody's")
    func publications() {
        var meters = WorkerMeters()
        meters.note(2, .confirmed, on: PublisherChannel.replies)
        meters.note(3, .unknown, on: PublisherChannel.topology)
        #expect(meters.publications.flatMap { $0 }.reduce(0, +) == 2)
    }
}
