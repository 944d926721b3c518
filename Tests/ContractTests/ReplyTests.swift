import Contract
import RoomCore
import Testing

@Suite("Answers to commands")
struct ReplyTests {
    static let start = EventEncoderTests.start
    static let definition = EventEncoderTests.plain

    /// A room whose one session is in this phase, three users in it.
    static func room(_ phase: Session.Phase, connected: Int64 = 3) -> Room {
        Room(
            id: "demo", definition: definition, sequence: 7, sessionNumber: 1, isOpen: true,
            session: Session(
                number: 1, definition: definition, phase: phase, connected: connected, changedAt: start))
    }

    static func reply(_ room: Room, _ outcome: Outcome, at now: Instant, _ command: Command) -> String {
        let transition = Transition(
            room: room, events: [], participant: nil, isChange: false, judgedAt: now)
        return ReplyEncoder.encode(
            decision: Decision(transition: transition, outcome: outcome), command: command
        ).text
    }

    static let running = Session.Phase.running(
        Run(startedAt: start, endsAt: start + .minutes(20), extensions: 1))
    static let extend = Command(room: "demo", user: "u", id: "c-1", action: .extend(by: nil))

    @Test("an extension answers as in the contract")
    func extended() {
        let outcome = Outcome.extended(by: .minutes(10), endsAt: Self.start + .minutes(20), extensions: 1)
        let now = Self.start + .seconds(108)
        #expect(
            Self.reply(Self.room(Self.running), outcome, at: now, Self.extend)
                == #"{"id":"c-1","command":"extend","room":"demo","ok":true,"#
                + #""result":{"extendedTime":10,"endsAt":"2026-11-29T12:40:00.000Z","extensions":1},"#
                + #""session":{"number":1,"state":"running","startedAt":"2026-11-29T12:20:00.000Z","#
                + #""endsAt":"2026-11-29T12:40:00.000Z","timeLeft":18.2,"window":null,"#
                + #""nextWindowAt":"2026-11-29T12:30:00.000Z","extensions":1,"connected":3},"#
                + #""sequence":7,"serverTime":"2026-11-29T12:21:48.000Z"}"#)
    }

    @Test("a join answers with the role, in the final window without a next one")
    func joined() {
        let command = Command(room: "demo", user: "u", action: .join(role: nil))
        #expect(
            Self.reply(
                Self.room(Self.running), .joined(role: .viewer), at: Self.start + .minutes(16), command)
                == #"{"id":null,"command":"join","room":"demo","ok":true,"result":{"role":"viewer"},"#
                + #""session":{"number":1,"state":"running","startedAt":"2026-11-29T12:20:00.000Z","#
                + #""endsAt":"2026-11-29T12:40:00.000Z","timeLeft":4,"window":2,"nextWindowAt":null,"#
                + #""extensions":1,"connected":3},"sequence":7,"serverTime":"2026-11-29T12:36:00.000Z"}"#)
    }

    @Test("a waiting session has no times")
    func waiting() {
        let command = Command(room: "demo", action: .status)
        #expect(
            Self.reply(Self.room(.waiting), .done, at: Self.start, command).contains(
                #""ok":true,"result":{},"session":{"number":1,"state":"waiting","startedAt":null,"endsAt":null,"#
                    + #""timeLeft":null,"window":null,"nextWindowAt":null,"extensions":0,"connected":3},"#))
    }

    @Test("an ended session says when and why")
    func ended() {
        let ending = Ending(
            startedAt: Self.start, endsAt: Self.start + .minutes(20), endedAt: Self.start + .minutes(3),
            cause: .destroyed, extensions: 2)
        let command = Command(room: "demo", user: "u", action: .destroy)
        #expect(
            Self.reply(Self.room(.ended(ending), connected: 0), .done, at: Self.start + .minutes(3), command)
                .contains(
                    #""session":{"number":1,"state":"ended","startedAt":"2026-11-29T12:20:00.000Z","#
                        + #""endsAt":"2026-11-29T12:40:00.000Z","timeLeft":0,"window":null,"nextWindowAt":null,"#
                        + #""extensions":2,"connected":0,"endedAt":"2026-11-29T12:23:00.000Z","cause":"destroyed"},"#
                ))
    }

    @Test(
        "each refusal has its number and its word, and only two have more",
        arguments: Refusal.Reason.allCases)
    func refusals(reason: Refusal.Reason) throws {
        let refusal = Refusal(reason, "no", opensAt: Self.start, extendedBy: .user("u"))
        let text = Self.reply(Self.room(Self.running), .refused(refusal), at: Self.start, Self.extend)
        let more =
            switch reason {
            case .alreadyExtended: #","extendedBy":"u","opensAt":"2026-11-29T12:20:00.000Z""#
            case .windowNotOpen: #","opensAt":"2026-11-29T12:20:00.000Z""#
            default: ""
            }
        let error = #""error":{"code":\#(reason.code),"reason":"\#(reason.rawValue)","message":"no"\#(more)}"#
        #expect(
            text.hasPrefix(#"{"id":"c-1","command":"extend","room":"demo","ok":false,\#(error),"session":{"#))
    }

    @Test("an operator's extension and a window without a time are null")
    func nullDetails() {
        let extended = Refusal(.alreadyExtended, "no", opensAt: Self.start, extendedBy: .operator("x"))
        #expect(
            Self.reply(Self.room(Self.running), .refused(extended), at: Self.start, Self.extend)
                .contains(#""extendedBy":null,"opensAt":"2026"#))
        let waiting = Refusal(.windowNotOpen, "no")
        #expect(
            Self.reply(Self.room(.waiting), .refused(waiting), at: Self.start, Self.extend)
                .contains(#""message":"no","opensAt":null}"#))
    }

    @Test("of an unknown room nothing is known")
    func unknownRoom() {
        let refusal = Refusal(.unknownRoom, "there is no such room")
        #expect(
            Self.reply(Room(id: "demo"), .refused(refusal), at: Self.start, Self.extend)
                == #"{"id":"c-1","command":"extend","room":"demo","ok":false,"#
                + #""error":{"code":6002,"reason":"unknown_room","message":"there is no such room"},"#
                + #""session":null,"sequence":null,"serverTime":"2026-11-29T12:20:00.000Z"}"#)
    }

    @Test("an invalid command is answered with what is valid of it")
    func invalidCommand() {
        let none = InvalidCommand(.notJSON, "no\njson")
        #expect(
            ReplyEncoder.encode(invalid: none, serverTime: Self.start).text
                == #"{"id":null,"command":null,"room":null,"ok":false,"#
                + #""error":{"code":6008,"reason":"invalid_command","message":"no?json"},"#
                + #""session":null,"sequence":null,"serverTime":"2026-11-29T12:20:00.000Z"}"#)
        let some = InvalidCommand(.invalidCommand, "no", id: "k", command: .join, room: "r")
        #expect(
            ReplyEncoder.encode(invalid: some, serverTime: Self.start).text
                .hasPrefix(#"{"id":"k","command":"join","room":"r","ok":false,"#))
    }

    @Test("a client reads what the worker wrote")
    func decoding() throws {
        let done = Self.reply(Self.room(Self.running), .done, at: Self.start, Self.extend)
        let reply = try #require(ReplyDecoder.decode(Array(done.utf8)))
        #expect(reply.ok && reply.id == "c-1" && reply.command == .extend && reply.room == "demo")
        #expect(reply.error == nil && reply.serverTime == Self.start)
        #expect(reply.whole["session"]?["number"] == .integer(1))
        let refusal = Refusal(.unauthorized, "only a moderator may destroy the session")
        let refused = Self.reply(Self.room(Self.running), .refused(refusal), at: Self.start, Self.extend)
        let failure = try #require(ReplyDecoder.decode(Array(refused.utf8)))
        #expect(!failure.ok)
        #expect(
            failure.error
                == Reply.Failure(
                    code: 5116, reason: "unauthorized", message: "only a moderator may destroy the session"))
    }

    @Test(
        "what is no answer is none",
        arguments: [
            "", "[]", "{}", #"{"ok":"true"}"#, #"{"ok":false}"#, #"{"ok":false,"error":null}"#,
            #"{"ok":true,"error":{"code":1,"reason":"a","message":"b"}}"#,
        ])
    func notAnswers(text: String) {
        #expect(ReplyDecoder.decode(Array(text.utf8)) == nil)
    }
}
