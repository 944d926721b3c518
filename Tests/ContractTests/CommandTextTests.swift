import Contract
import RoomCore
import Testing

@Suite("The canonical text of a command")
struct CommandTextTests {
    /// All different commands, many of them close to one another.
    static let different: [Command] = {
        var actions: [Command.Action] = [.leave, .destroy, .status, .join(role: nil), .extend(by: nil)]
        actions += Role.allCases.map { .join(role: $0) }
        actions += [1, 10, 600_000].map { .extend(by: TimeSpan(milliseconds: $0)) }
        var requests = [
            OpenRequest(), OpenRequest(duration: .minutes(60)), OpenRequest(moderators: []),
            OpenRequest(moderators: ["a"]), OpenRequest(moderators: ["a", "b"]),
            OpenRequest(moderators: ["b", "a"]),
            OpenRequest(moderators: ["a\",\"b"]), OpenRequest(moderators: ["a", "a"]),
        ]
        let policies = [
            PolicyRequest(), PolicyRequest(windows: []), PolicyRequest(windows: [.minutes(10)]),
            PolicyRequest(windows: [.minutes(10), .minutes(5)]),
            PolicyRequest(windows: [.minutes(5), .minutes(10)]),
            PolicyRequest(extension: ExtensionRequest()),
            PolicyRequest(extension: ExtensionRequest(min: .minutes(10))),
            PolicyRequest(extension: ExtensionRequest(max: .minutes(10))),
            PolicyRequest(extension: ExtensionRequest(default: .minutes(10))),
            PolicyRequest(extenders: .anyone), PolicyRequest(extenders: .moderators),
            PolicyRequest(maxExtensions: 0),
            PolicyRequest(maxExtensions: 600_000), PolicyRequest(maxTotal: .minutes(10)),
            PolicyRequest(clock: .open),
            PolicyRequest(clock: .firstJoin), PolicyRequest(reopen: .join), PolicyRequest(reopen: .command),
        ]
        requests += policies.map { OpenRequest(policy: $0) }
        actions += requests.map { .open($0) }
        let rooms: [RoomID] = ["r", "R", "é", "e\u{301}", "r\",\"u\":\"x"]
        let users: [UserID?] = [nil, "u", "x"]
        return rooms.flatMap { room in
            users.flatMap { user in actions.map { Command(room: room, user: user, action: $0) } }
        }
    }()

    @Test("different commands have different texts")
    func injective() {
        #expect(Set(Self.different).count == Self.different.count)
        #expect(Set(Self.different.map(CommandText.canonical)).count == Self.different.count)
    }

    @Test(
        "other spellings of the same command have the same text",
        arguments: [
            (
                #"{"command":"extend","room":"r","user":"u","by":"10m"}"#,
                #"{"user":"u","minutes":10.0,"room":"\u0072","id":"k","command":"extend"}"#
            ),
            (
                #"{"command":"open","room":"r","user":"x","duration":"1h","policy":{"windows":[10,"5m"]}}"#,
                #"{"command":"open","room":"r","policy":{"windows":["600s",5e0]},"duration":60}"#
            ),
        ])
    func sameText(one: String, other: String) throws {
        let texts = try [one, other].map { CommandText.canonical(try decode($0).get()) }
        #expect(texts[0] == texts[1])
    }

    @Test("the text is what it was: stored keys depend on it")
    func golden() {
        let text = CommandText.canonical(
            Command(
                room: "r", id: "k",
                action: .open(
                    OpenRequest(
                        duration: .minutes(45), moderators: ["a"], policy: CommandDecoderTests.full))))
        #expect(
            text.text
                == #"{"c":"open","r":"r","duration":2700000,"moderators":["a"],"policy":{"windows":[600000,90000,250],"#
                + #""extension":{"min":600000,"max":1800000,"default":900000},"extenders":"moderators","#
                + #""maxExtensions":3,"maxTotal":7200000,"clock":"first-moderator","reopen":"join"}}"#)
        #expect(
            CommandText.canonical(Command(room: "r", user: "u", action: .extend(by: nil))).text
                == #"{"c":"extend","r":"r","u":"u"}"#)
    }
}
