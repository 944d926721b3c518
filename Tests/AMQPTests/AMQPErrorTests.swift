import Testing

@testable import AMQP

@Suite struct AMQPErrorTests {
    struct Case: Sendable {
        var code: UInt16
        var classID: UInt16 = 50
        var methodID: UInt16 = 10
        var kind: AMQPError.Kind
        var isConfiguration: Bool
    }

    static let cases: [Case] = [
        Case(code: 403, kind: .accessRefused, isConfiguration: true),
        Case(code: 404, kind: .notFound, isConfiguration: true),
        Case(code: 405, kind: .resourceLocked, isConfiguration: true),
        Case(code: 406, kind: .preconditionFailed, isConfiguration: true),
        // An acknowledgement of an unknown number, and a delivery held too long: a new channel mends both.
        Case(code: 406, classID: 60, methodID: 80, kind: .preconditionFailed, isConfiguration: false),
        Case(code: 406, classID: 0, methodID: 0, kind: .preconditionFailed, isConfiguration: false),
        Case(code: 530, kind: .notAllowed, isConfiguration: true),
        Case(code: 320, kind: .otherClose(320), isConfiguration: false),
        Case(code: 541, kind: .otherClose(541), isConfiguration: false),
        Case(code: 504, kind: .otherClose(504), isConfiguration: false),
    ]

    @Test("a close is classified by what mends it", arguments: cases)
    func classified(_ one: Case) {
        let error = AMQPError(
            scope: .channel, closeCode: one.code, text: [], classID: one.classID, methodID: one.methodID)
        #expect(error.kind == one.kind)
        #expect(error.code == one.code)
        #expect(error.isConfiguration == one.isConfiguration)
        #expect(error.isRetryable == !one.isConfiguration)
    }

    @Test("a broker's text stays one line of valid text")
    func oneLine() {
        let hostile = Array("a\nb\u{1B}[2Jc\u{2028}d\u{202E}e".utf8) + [0xFF, 0x00]
        let error = AMQPError(scope: .connection, closeCode: 320, text: hostile, classID: 0, methodID: 0)
        #expect(error.text == "a b [2Jc d e\u{FFFD} ")
    }

    @Test("the delay doubles up to the maximum, and a wrong configuration waits longest")
    func backoff() {
        let backoff = Backoff()
        let delays = (1...9).map { backoff.milliseconds(failures: $0, isConfiguration: false, unit: 0) }
        #expect(delays == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
        #expect(backoff.milliseconds(failures: 1, isConfiguration: true, unit: 0) == 10_000)
        #expect(backoff.milliseconds(failures: 1, isConfiguration: true, unit: 1) == 7500)
        #expect(backoff.milliseconds(failures: .max, isConfiguration: false, unit: 0.5) == 8750)
        #expect(
            Backoff(first: .zero, maximum: .zero).milliseconds(failures: 1, isConfiguration: false, unit: 0)
                == 0)
    }
}
