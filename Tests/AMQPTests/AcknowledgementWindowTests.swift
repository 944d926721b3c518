import Testing

@testable import AMQP

@Suite struct AcknowledgementWindowTests {
    private func window(_ tags: ClosedRange<UInt64>) throws -> AcknowledgementWindow {
        var window = AcknowledgementWindow()
        for tag in tags { try window.delivered(tag) }
        return window
    }

    @Test("bytes are counted until their delivery is acknowledged or rejected")
    func bytes() throws {
        var window = AcknowledgementWindow()
        for (tag, bytes) in [(1, 10), (2, 0), (3, 5), (4, 7)] as [(UInt64, Int)] {
            try window.delivered(tag, largeBytes: bytes)
        }
        _ = window.acknowledge([3, 2, 3])
        #expect(window.largeBytes == 17)
        _ = window.reject(1, requeue: false)
        #expect(window.largeBytes == 7)
        _ = window.acknowledge([4])
        #expect(window.largeBytes == 0)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var acknowledged: [[UInt64]]
        var last: [ChannelMethod]
    }

    static let cases: [Case] = [
        Case(
            testDescription: "a prefix is one frame", acknowledged: [[1, 2, 3]],
            last: [.acknowledge(tag: 3, multiple: true)]),
        Case(
            testDescription: "in any order", acknowledged: [[3, 1, 2]],
            last: [.acknowledge(tag: 3, multiple: true)]),
        Case(
            testDescription: "a single one", acknowledged: [[1]],
            last: [.acknowledge(tag: 1, multiple: false)]),
        Case(
            testDescription: "beyond an open one each alone", acknowledged: [[2, 3]],
            last: [.acknowledge(tag: 2, multiple: false), .acknowledge(tag: 3, multiple: false)]),
        Case(
            testDescription: "a prefix and some beyond", acknowledged: [[1, 2, 4]],
            last: [.acknowledge(tag: 2, multiple: true), .acknowledge(tag: 4, multiple: false)]),
        Case(
            testDescription: "over what was settled before", acknowledged: [[2], [1, 3]],
            last: [.acknowledge(tag: 3, multiple: true)]),
        Case(testDescription: "unknown numbers are not sent", acknowledged: [[0, 9, .max]], last: []),
        Case(testDescription: "settled numbers are not sent", acknowledged: [[1], [1]], last: []),
        Case(
            testDescription: "twice in one go", acknowledged: [[1, 1]],
            last: [.acknowledge(tag: 1, multiple: false)]),
    ]

    @Test("only what settles nothing else goes in one frame", arguments: cases)
    func acknowledge(_ one: Case) throws {
        var window = try window(1...5)
        var last: [ChannelMethod] = []
        for tags in one.acknowledged { last = window.acknowledge(tags) }
        #expect(last == one.last)
    }

    @Test("a rejected delivery is settled, and once")
    func reject() throws {
        var window = try window(1...3)
        #expect(window.reject(1, requeue: true) == .reject(tag: 1, requeue: true))
        #expect(window.reject(1, requeue: true) == nil)
        #expect(window.acknowledge([2, 3]) == [.acknowledge(tag: 3, multiple: true)])
        #expect(window.openCount == 0)
    }

    @Test("gaps in the numbers are fine, repeats are a violation")
    func numbers() throws {
        var window = AcknowledgementWindow()
        try window.delivered(5)
        try window.delivered(9)
        #expect(throws: AMQPError.self) { try window.delivered(9) }
        #expect(window.acknowledge([5, 9]) == [.acknowledge(tag: 9, multiple: true)])
    }

    @Test("a long life stays exact")
    func longLife() throws {
        var window = AcknowledgementWindow()
        var isExact = true
        for tag in 1...UInt64(10_000) {
            try window.delivered(tag)
            guard tag > 5 else { continue }
            let methods = window.acknowledge([tag - 5])
            isExact = isExact && methods == [.acknowledge(tag: tag - 5, multiple: false)]
        }
        #expect(isExact)
        #expect(window.openCount == 5)
    }

    @Test("the largest number is acknowledged like any other")
    func largest() throws {
        var window = AcknowledgementWindow()
        try window.delivered(.max - 1)
        try window.delivered(.max)
        #expect(window.acknowledge([.max]) == [.acknowledge(tag: .max, multiple: false)])
        #expect(window.acknowledge([.max - 1]) == [.acknowledge(tag: .max - 1, multiple: false)])
        #expect(window.openCount == 0)
    }

    @Test("a delivery numbered 0 is refused: its acknowledgement would settle everything")
    func zero() throws {
        var window = AcknowledgementWindow()
        #expect(throws: AMQPError.self) { try window.delivered(0) }
    }
}
