import AMQP
import Contract
import RoomCore
import Testing

@Suite("Commands")
struct CommandDecoderTests {
    static let full = PolicyRequest(
        windows: [.minutes(10), .seconds(90), TimeSpan(milliseconds: 250)],
        extension: ExtensionRequest(min: .minutes(10), max: .minutes(30), default: .minutes(15)),
        extenders: .moderators, maxExtensions: 3, maxTotal: .minutes(120), clock: .firstModerator,
        reopen: .join)

    static let good: [(String, Command)] = [
        (#"{"command":"open","room":"r"}"#, Command(room: "r", action: .open(OpenRequest()))),
        (
            #"{"command":"open","room":"r","user":"u","duration":45.5,"moderators":["a","b"]}"#,
            Command(
                room: "r",
                action: .open(OpenRequest(duration: .seconds(2_730), moderators: ["a", "b"])))
        ),
        (
            #"{"command":"open","room":"r","moderators":[],"policy":{}}"#,
            Command(room: "r", action: .open(OpenRequest(moderators: [], policy: PolicyRequest())))
        ),
        (
            #"""
            {"command":"open","room":"r","policy":{"windows":["10m","1m30s","250ms"],"extenders":"moderators",
             "extension":{"min":10,"max":"30m","default":15.0},"maxExtensions":3,"maxTotal":"2h",
             "clock":"first-moderator","reopen":"join"}}
            """#,
            Command(room: "r", action: .open(OpenRequest(policy: full)))
        ),
        (
            #"{"command":"open","room":"r","policy":{"windows":[],"extension":{}}}"#,
            Command(
                room: "r",
                action: .open(
                    OpenRequest(policy: PolicyRequest(windows: [], extension: ExtensionRequest()))))
        ),
        (
            #"{"command":"open","room":"r","policy":{"windows":[1,2,2,3,4,5,6,7,8,9],"maxExtensions":0}}"#,
            Command(
                room: "r",
                action: .open(
                    OpenRequest(
                        policy: PolicyRequest(
                            windows: [1, 2, 2, 3, 4, 5, 6, 7, 8, 9].map(TimeSpan.minutes), maxExtensions: 0)))
            )
        ),
        (
            #"{"command":"join","room":"Raum é \"1\"","user":"u","id":"k\n"}"#,
            Command(room: "Raum é \"1\"", user: "u", id: "k\n", action: .join(role: nil))
        ),
        (
            #"{"command":"join","room":"r","user":"u","role":"viewer"}"#,
            Command(room: "r", user: "u", action: .join(role: .viewer))
        ),
        (#"{"command":"leave","room":"r","user":"u"}"#, Command(room: "r", user: "u", action: .leave)),
        (#"{"command":"extend","room":"r"}"#, Command(room: "r", action: .extend(by: nil))),
        (
            #"{"command":"extend","room":"r","user":"u","by":"15m"}"#,
            Command(room: "r", user: "u", action: .extend(by: .minutes(15)))
        ),
        (
            #"{"command":"extend","room":"r","user":"u","minutes":15}"#,
            Command(room: "r", user: "u", action: .extend(by: .minutes(15)))
        ),
        (#"{"command":"destroy","room":"r"}"#, Command(room: "r", action: .destroy)),
        (#"{"command":"destroy","room":"r","user":"u"}"#, Command(room: "r", user: "u", action: .destroy)),
        (" {\t\"command\" : \"status\",\r\n\"room\":\"r\"} ", Command(room: "r", action: .status)),
    ]

    @Test("a command decodes to its value, and what the client encodes decodes to the same", arguments: good)
    func decodes(body: String, command: Command) throws {
        #expect(try decode(body).get() == command)
        let encoded = CommandEncoder.encode(command)
        #expect(CommandDecoder.decode(body: encoded, properties: Properties()) == .success(command))
    }

    @Test(
        "what is absent or JSON by another spelling is taken",
        arguments: [
            nil, "", "application/json", "Application/JSON", "application/json; charset=utf-8",
            "application/json;charset=latin1;x=y", " application/json ", "application/json\t; a",
        ] as [ShortString?])
    func contentTypes(type: ShortString?) {
        let properties = Properties(contentType: type, contentEncoding: "")
        #expect(invalid(#"{"command":"status","room":"r"}"#, properties) == nil)
    }

    @Test("the property type is the command where the field is absent, and only there")
    func typeProperty() throws {
        let properties = Properties(type: "status")
        #expect(try decode(#"{"room":"r"}"#, properties).get().action == .status)
        #expect(try decode(#"{"command":"destroy","room":"r"}"#, properties).get().action == .destroy)
        #expect(invalid(#"{"command":null,"room":"r"}"#, properties)?.detail.contains("not null") == true)
        #expect(
            invalid(#"{"room":"r"}"#, Properties(type: "stauts"))?.detail.contains("mean \"status\"") == true)
        #expect(
            invalid(#"{"room":"r"}"#, Properties(type: ""))?.detail.contains("command is missing") == true)
        let bytes = ShortString(bytes: [0xFF, 0x00])
        #expect(invalid(#"{"room":"r"}"#, Properties(type: bytes))?.detail.contains("property type") == true)
    }

    @Test("message_id is the key where id is absent, and an empty one counts as absent")
    func messageIDProperty() throws {
        let body = #"{"command":"status","room":"r"}"#
        #expect(try decode(body, Properties(messageID: "m")).get().id == "m")
        #expect(try decode(body, Properties(messageID: "")).get().id == nil)
        #expect(try decode(body).get().id == nil)
        let own = #"{"command":"status","room":"r","id":"k"}"#
        #expect(try decode(own, Properties(messageID: "m")).get().id == "k")
    }

    @Test("names are measured in bytes, and 128 are allowed")
    func lengths() {
        let longest = String(repeating: "é", count: 64)
        for field in ["room", "user", "id"] {
            let others = field == "room" ? "" : #""room":"r","#
            func body(_ text: String) -> String { #"{"command":"extend",\#(others)"\#(field)":"\#(text)"}"# }
            #expect(invalid(body(longest)) == nil)
            #expect(
                invalid(body(longest + "x"))?.detail.contains(
                    "\(field) must have 1 to 128 bytes of UTF-8, not 129") == true)
        }
    }

    @Test("a key may hold any character but NUL")
    func keyCharacters() throws {
        let id = try decode(#"{"command":"status","room":"r","id":"\u0001\u007f\u0085é"}"#).get().id
        #expect(id == "\u{1}\u{7F}\u{85}é")
    }

    @Test("a policy by itself decodes as within an open")
    func policyAlone() {
        func policy(_ json: String) -> Result<PolicyRequest, InvalidCommand> {
            CommandDecoder.decodePolicy(Array(json.utf8))
        }
        #expect(
            policy(#"{"windows":[10],"clock":"open"}"#)
                == .success(PolicyRequest(windows: [.minutes(10)], clock: .open)))
        #expect(policy("{}") == .success(PolicyRequest()))
        for (json, fragment) in [
            ("[]", "policy must be an object, not an array"), ("{", "ends too early"),
            (#"{"windwos":[10]}"#, "did you mean \"policy.windows\"?"),
        ] {
            guard case .failure(let invalid) = policy(json) else {
                Issue.record("\(json) was taken for a policy")
                continue
            }
            #expect(invalid.detail.contains(fragment), "\(invalid.detail)")
        }
    }

    @Test("a list as long as 64 KiB allow decodes")
    func longList() throws {
        let names = (0..<7_000).map { "\"u\($0)\"" }.joined(separator: ",")
        let command = try decode(#"{"command":"open","room":"r","moderators":[\#(names)]}"#).get()
        guard case .open(let request) = command.action else { return }
        #expect(request.moderators?.count == 7_000)
    }

    @Test(
        "a reply goes anywhere but into Overtime's own queues",
        arguments: [
            (nil, .none), ("", .none), ("amq.gen-x", .allowed), ("overtime", .allowed),
            ("overtimes.x", .allowed),
            ("overtime.own.send.1", .allowed), ("overtime.own.", .allowed), ("overtime.", .forbidden),
            ("overtime.commands", .forbidden), ("overtime.commands.0", .forbidden),
            ("overtime.own", .forbidden),
            ("overtime.dead", .forbidden), ("Overtime.dead", .allowed),
        ] as [(ShortString?, ReplyTarget)])
    func replyTargets(replyTo: ShortString?, target: ReplyTarget) {
        #expect(ReplyTarget.check(replyTo: replyTo, prefix: "overtime") == target)
    }

    @Test("the prefix of a reply target is the configured one")
    func replyPrefix() {
        #expect(ReplyTarget.check(replyTo: "overtime.dead", prefix: "test.x") == .allowed)
        #expect(ReplyTarget.check(replyTo: "test.x.dead", prefix: "test.x") == .forbidden)
        #expect(ReplyTarget.refusal(prefix: "test.x").detail.contains("test.x.own."))
    }
}
