import AMQP
import Contract
import Testing

@Suite("Dead letters")
struct DeadLetterTests {
    @Test("everything stays but what would make the broker refuse, delete or copy the letter")
    func intact() {
        let deaths = FieldValue.array([.table(["count": .int64(1)])])
        let original = Properties(
            contentType: "application/json", contentEncoding: "gzip",
            headers: [
                "a": .bool(true), "CC": .array([.text("x")]), "cc": .text("kept"), "x-death": deaths,
                "BCC": .array([.text("y")]), "b": .void,
            ],
            deliveryMode: 1, priority: 3, correlationID: "c", replyTo: "r", expiration: "1000",
            messageID: "m", timestamp: 5, type: "join", userID: "guest", appID: "app", clusterID: "cl")
        var expected = original
        expected.headers = [
            "a": .bool(true), "x-overtime-original-cc": .array([.text("x")]), "cc": .text("kept"),
            "x-death": deaths, "x-overtime-original-bcc": .array([.text("y")]), "b": .void,
            "x-overtime-original-user-id": .text("guest"), "x-overtime-original-expiration": .text("1000"),
            "x-overtime-reason": .text("not_json"), "x-overtime-detail": .text("why"),
        ]
        expected.deliveryMode = 2
        expected.userID = nil
        expected.expiration = nil
        #expect(DeadLetter.properties(original: original, reason: "not_json", detail: "why") == expected)
    }

    @Test("a message without properties gets the reason and nothing else")
    func bare() {
        #expect(
            DeadLetter.properties(original: Properties(), reason: "not_json", detail: "why")
                == Properties(
                    headers: ["x-overtime-reason": .text("not_json"), "x-overtime-detail": .text("why")],
                    deliveryMode: 2))
    }

    @Test("a letter that comes back keeps its first owner and gets the new reason")
    func again() {
        let first = DeadLetter.properties(
            original: Properties(userID: "guest"), reason: "not_json", detail: "first")
        let second = DeadLetter.properties(original: first, reason: "too_large", detail: "second")
        #expect(
            second.headers
                == [
                    "x-overtime-original-user-id": .text("guest"), "x-overtime-reason": .text("too_large"),
                    "x-overtime-detail": .text("second"),
                ])
    }

    @Test("a detail is bounded and one line")
    func bounded() {
        let letter = DeadLetter.properties(
            original: Properties(), reason: "x\ny", detail: String(repeating: "é\n", count: 5_000))
        guard case .string(let detail) = letter.headers?["x-overtime-detail"] else {
            Issue.record("no detail")
            return
        }
        #expect(detail.count <= 512 && !detail.contains(10))
        #expect(letter.headers?["x-overtime-reason"] == .text("x?y"))
    }

    @Test("headers that would close the connection are left out, and a header says so")
    func unpublishable() {
        let large = Properties(headers: ["big": .string([UInt8](repeating: 0x61, count: 120_000))])
        let letter = DeadLetter.properties(original: large, reason: "not_json", detail: "why")
        #expect(letter.headers?["big"] == nil)
        #expect(letter.headers?["x-overtime-dropped-headers"]?.text?.hasPrefix("too large: 120") == true)
        var deep = Properties()
        deep.headersTooDeep = true
        let other = DeadLetter.properties(original: deep, reason: "not_json", detail: "why")
        #expect(other.headers?["x-overtime-dropped-headers"] == .text("nested too deep"))
        #expect(!other.headersTooDeep)
    }

    @Test("unsigned 64-bit integers, which the broker does not know, are written otherwise")
    func unsigned() {
        let original = Properties(
            headers: [
                "n": .uint64(7), "big": .uint64(.max), "in": .array([.uint64(1), .table(["t": .uint64(2)])]),
            ])
        let letter = DeadLetter.properties(original: original, reason: "r", detail: "d")
        #expect(letter.headers?["n"] == .int64(7))
        #expect(letter.headers?["big"] == .text("18446744073709551615"))
        #expect(letter.headers?["in"] == .array([.int64(1), .table(["t": .int64(2)])]))
    }
}
