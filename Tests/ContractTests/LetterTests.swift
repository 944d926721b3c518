import AMQP
import Contract
import RoomCore
import Testing

@Suite("Letters")
struct LetterTests {
    private static func letter(
        _ properties: Properties = Properties(), key: ShortString = "old",
        body: String = #"{"command":"join","room":"demo","user":"ann","id":"k"}"#
    ) -> Letter {
        Letter(routingKey: key, properties: properties, body: .bytes(Array(body.utf8)))
    }

    private static let expired: Table = [
        "x-death": .array([
            .table([
                "count": .int64(1), "reason": .text("expired"), "queue": .text("o.commands"),
                "exchange": .text("o.commands"), "time": .timestamp(1_800_000_000),
                "original-expiration": .text("60000"), "routing-keys": .array([.text("demo")]),
            ])
        ]),
        "x-first-death-reason": .text("expired"), "x-last-death-queue": .text("o.commands"),
        "mine": .int32(1),
    ]

    @Test("an id survives what the broker does at each delivery, and the order of headers")
    func stable() {
        let first = Self.letter(Properties(headers: ["a": .int32(1), "b": .text("x")], messageID: "m"))
        let again = Self.letter(
            Properties(
                headers: ["b": .text("x"), "x-delivery-count": .int64(4), "a": .int32(1)], messageID: "m"))
        #expect(LetterID.hash(of: first) == LetterID.hash(of: again))
        #expect(LetterID.hash(of: first).text == "fgzuxqr4ps")
    }

    @Test("letters that differ in anything else have other ids")
    func different() {
        let letters = [
            Self.letter(), Self.letter(body: "{}"), Self.letter(key: "other"),
            Self.letter(Properties(messageID: "m")),
            Self.letter(Properties(correlationID: "m")), Self.letter(Properties(messageID: "")),
            Self.letter(Properties(headers: ["a": .int32(1)])),
            Self.letter(Properties(headers: ["a": .int32(2)])),
            Self.letter(Properties(headers: ["a": .text("1")])), Self.letter(Properties(timestamp: 1)),
            Letter(routingKey: "old", properties: Properties(), body: .discarded(size: 54)),
        ]
        #expect(Set(letters.map(LetterID.hash)).count == letters.count)
    }

    @Test("equal letters are numbered in the order of the queue")
    func twins() {
        var numbering = LetterNumbering()
        let ids = [Self.letter(), Self.letter(body: "{}"), Self.letter(), Self.letter()].map {
            numbering.id(of: $0).text
        }
        #expect(ids == [ids[0], ids[1], ids[0] + "-2", ids[0] + "-3"])
    }

    @Test("the broker's note tells reason, origin and time")
    func noted() {
        let letter = Self.letter(Properties(headers: Self.expired, timestamp: 1_700_000_000))
        #expect(letter.reason == "expired")
        #expect(letter.detail == "once, its expiration was 60000 ms")
        #expect(letter.origin == Letter.Origin(exchange: "o.commands", queue: "o.commands"))
        #expect(letter.time == Instant(milliseconds: 1_800_000_000_000))
        #expect(letter.age(at: Instant(milliseconds: 1_800_000_005_000)) == TimeSpan(milliseconds: 5_000))
        #expect(letter.age(at: Instant(milliseconds: 0)) == TimeSpan(milliseconds: 0))
    }

    @Test("the worker's word counts before the broker's older note")
    func worker() {
        var headers = Self.expired
        headers["x-overtime-reason"] = .text("not_json")
        headers["x-overtime-detail"] = .text("why")
        let letter = Self.letter(Properties(headers: headers, timestamp: 1_700_000_000))
        #expect(letter.reason == "not_json")
        #expect(letter.detail == "why")
        #expect(letter.origin == nil)
        #expect(letter.time == Instant(milliseconds: 1_700_000_000_000))
    }

    @Test(
        "no time, and one that no clock shows, is no age", arguments: [nil, 0, 1_800_000_000_000, UInt64.max])
    func noTime(_ timestamp: UInt64?) {
        #expect(Self.letter(Properties(timestamp: timestamp)).age(at: .latest) == nil)
    }

    @Test("the body tells room, command and key, each where it is valid")
    func echo() {
        #expect(
            Self.letter().echo == Letter.Echo(command: .join, room: RoomID("demo"), key: CommandID("k")))
        let odd = Self.letter(Properties(messageID: "m"), body: #"{"command":"jin","room":"demo"}"#)
        #expect(odd.echo == Letter.Echo(command: nil, room: RoomID("demo"), key: CommandID("m")))
        #expect(Self.letter(body: "\u{1B}").echo == Letter.Echo(command: nil, room: nil, key: nil))
    }

    @Test("a retried command is what it was, without what the broker would act upon")
    func restored() {
        let original = Properties(
            contentType: "application/json", headers: ["a": .bool(true), "CC": .text("x")], deliveryMode: 2,
            priority: 3, correlationID: "c", replyTo: "r", expiration: "1000", messageID: "m", timestamp: 5,
            type: "join", userID: "alice", appID: "app", clusterID: "cl")
        let dead = DeadLetter.properties(original: original, reason: "crashed_worker", detail: "why")
        let command = RestoredCommand(Self.letter(dead), user: "guest")
        var expected = original
        expected.headers = ["a": .bool(true)]
        expected.userID = nil
        expected.expiration = nil
        #expect(command.properties == expected)
        #expect(command.leftOut == ["user_id alice", "expiration 1000 ms", "the header CC"])
        #expect(command.routingKey == "demo")
        #expect(RestoredCommand(Self.letter(dead), user: "alice").properties.userID == "alice")
    }

    @Test("the broker's notes are not sent again, and a body without a room keeps its routing key")
    func restoredNoted() {
        let letter = Self.letter(Properties(headers: Self.expired, userID: "guest"), body: "[]")
        let command = RestoredCommand(letter, user: "guest")
        #expect(command.properties == Properties(headers: ["mine": .int32(1)], userID: "guest"))
        #expect(command.routingKey == "old")
        #expect(command.leftOut.isEmpty)
    }

    @Test("headers that were lost are said, and a reply address that would close the channel is left out")
    func lost() {
        var deep = Properties(replyTo: "amq.rabbitmq.reply-to")
        deep.headersTooDeep = true
        let command = RestoredCommand(Self.letter(deep), user: nil)
        #expect(command.properties == Properties())
        #expect(command.leftOut == ["reply_to amq.rabbitmq.reply-to", "headers, which are nested too deep"])
        let dropped = Properties(headers: ["x-overtime-dropped-headers": .text("too large: 9 bytes")])
        #expect(
            RestoredCommand(Self.letter(dropped), user: nil).leftOut
                == ["headers that the dead letter could not take over (too large: 9 bytes)"])
    }

    @Test("nothing unsafe is shown: control characters, C1, what turns the text around")
    func escaping() {
        let text = "a\u{1B}[31m\u{9B}\u{202E}\n\"\\😀\u{E0001}é"
        #expect(PrintableText.escaped(text) == #"a\u001b[31m\u009b\u202e\n"\😀\udb40\udc01é"#)
        #expect(PrintableText.escaped([0xFF, 0x0A]) == "0xff0a")
        let quoted = PrintableText.quotedJSON(text)
        #expect((try? StrictJSON.parse(Array(quoted.utf8)).get()) == .string(text))
        let json = LetterEncoder.encodeWhole(
            Self.letter(Properties(headers: ["h\u{9B}": .text(text)]), body: text), id: LetterID("i"))
        #expect(!String(decoding: json, as: UTF8.self).unicodeScalars.contains(where: PrintableText.isUnsafe))
    }

    @Test("JSON is laid out with its numbers and strings as they were sent")
    func pretty() {
        let lines = PrettyJSON.lines(Array(#" {"a":[1.50,{}, []],"b":"x{,\"\u0041" } "#.utf8))
        let expected = [
            "{", #"  "a": ["#, "    1.50,", "    {},", "    []", "  ],", #"  "b": "x{,\"\u0041""#, "}",
        ]
        #expect(lines == expected)
        #expect(PrettyJSON.lines(Array("{".utf8)) == nil)
        #expect(PrettyJSON.lines(Array("7".utf8)) == ["7"])
    }

    @Test("bytes are shown in hexadecimal, with what of them is ASCII")
    func dump() {
        #expect(
            HexText.dump([0x41, 0x1B, 0xFF]) == [
                "000000  41 1b ff" + String(repeating: " ", count: 41) + "A.."
            ])
    }
}
