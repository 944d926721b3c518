import RoomCore
import Testing

@Suite("When a command repeats another")
struct CommandEqualityTests {
    static func open(_ policy: PolicyRequest?) -> Command {
        Command(room: "demo", id: "c-1", action: .open(OpenRequest(policy: policy)))
    }

    @Test("Equal arguments are a repeat; an omitted one differs from its default written out")
    func arguments() {
        #expect(Self.open(PolicyRequest(extenders: .anyone)) == Self.open(PolicyRequest(extenders: .anyone)))
        #expect(Self.open(PolicyRequest(extenders: .anyone)) != Self.open(PolicyRequest()))
        #expect(Self.open(PolicyRequest()) != Self.open(nil))
        #expect(
            Self.open(PolicyRequest(extension: ExtensionRequest())) != Self.open(PolicyRequest()))
        let plain = Command(room: "demo", user: "ann", id: "c-1", action: .extend(by: nil))
        let written = Command(room: "demo", user: "ann", id: "c-1", action: .extend(by: .minutes(10)))
        #expect(plain != written)
    }

    @Test("Another room, user, key or kind is another command")
    func others() {
        let command = Command(room: "demo", user: "ann", id: "c-1", action: .leave)
        #expect(command != Command(room: "Demo", user: "ann", id: "c-1", action: .leave))
        #expect(command != Command(room: "demo", user: "bob", id: "c-1", action: .leave))
        #expect(command != Command(room: "demo", user: "ann", id: "c-2", action: .leave))
        #expect(command != Command(room: "demo", user: "ann", id: "c-1", action: .destroy))
    }

    @Test("Lists are compared in order")
    func lists() {
        let one = Command(room: "demo", action: .open(OpenRequest(moderators: ["ann", "bob"])))
        let two = Command(room: "demo", action: .open(OpenRequest(moderators: ["bob", "ann"])))
        #expect(one != two)
    }

    @Test("The kinds of commands are named as on the wire")
    func names() {
        let actions: [Command.Action] = [
            .open(OpenRequest()), .join(role: nil), .leave, .extend(by: nil), .destroy, .status,
        ]
        #expect(actions.map { $0.name } == CommandKind.allCases)
        #expect(
            CommandKind.allCases.map { $0.rawValue } == [
                "open", "join", "leave", "extend", "destroy", "status",
            ])
    }
}
