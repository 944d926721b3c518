import RoomCore
import Testing

/// A command to which two refusals of the contract's table apply; the one that stands first is given.
struct Clash: Sendable, CustomTestStringConvertible {
    let name: String
    let first: Refusal.Reason
    let second: Refusal.Reason
    let scene: Scene
    let action: Command.Action
    let actor: Actor
    var now = Instant.at(10)

    var testDescription: String { name }

    static let moderatorsOnly = PolicyRequest(extenders: .moderators)

    static func ended(_ policy: PolicyRequest = PolicyRequest()) -> Scene {
        var scene = Scene.running(policy)
        scene.destroy("ann", at: .at(5))
        return scene
    }

    static func extended(_ policy: PolicyRequest) -> Scene {
        var scene = Scene.running(policy)
        scene.extend("ann", at: .at(52))
        return scene
    }

    static func waiting(_ policy: PolicyRequest) -> Scene {
        var policy = policy
        policy.clock = .firstModerator
        var scene = Scene.opened(policy)
        scene.join("bob", .participant, at: .at(0))
        return scene
    }

    static let all: [Clash] = [
        Clash(
            name: "extend by a stranger in an unknown room", first: .unknownRoom, second: .noSession,
            scene: Scene(), action: .extend(by: nil), actor: .user("bob")),
        Clash(
            name: "extend by nobody in an unknown room", first: .unknownRoom, second: .unauthorized,
            scene: Scene(), action: .extend(by: nil), actor: .nobody),
        Clash(
            name: "destroy by an operator in an unknown room", first: .unknownRoom, second: .noSession,
            scene: Scene(), action: .destroy, actor: .backend),
        Clash(
            name: "leave in an unknown room", first: .unknownRoom, second: .notConnected,
            scene: Scene(), action: .leave, actor: .user("bob")),
        Clash(
            name: "extend by a stranger without a session", first: .noSession, second: .notConnected,
            scene: .opened(), action: .extend(by: nil), actor: .user("cid")),
        Clash(
            name: "extend by nobody without a session", first: .noSession, second: .unauthorized,
            scene: .opened(), action: .extend(by: nil), actor: .nobody),
        Clash(
            name: "extend after the end where none is allowed", first: .noSession, second: .limitReached,
            scene: ended(PolicyRequest(maxExtensions: 0)), action: .extend(by: nil), actor: .user("ann")),
        Clash(
            name: "extend by an operator after the end", first: .noSession, second: .windowNotOpen,
            scene: ended(), action: .extend(by: nil), actor: .backend),
        Clash(
            name: "destroy by nobody after the end", first: .noSession, second: .unauthorized,
            scene: ended(), action: .destroy, actor: .nobody),
        Clash(
            name: "destroy by a participant after the end", first: .noSession, second: .unauthorized,
            scene: ended(), action: .destroy, actor: .user("bob")),
        Clash(
            name: "leave after the end", first: .noSession, second: .notConnected,
            scene: ended(), action: .leave, actor: .user("cid")),
        Clash(
            name: "destroy by a stranger", first: .notConnected, second: .unauthorized,
            scene: .running(), action: .destroy, actor: .user("cid")),
        Clash(
            name: "extend by a stranger where moderators extend", first: .notConnected,
            second: .unauthorized, scene: .running(moderatorsOnly), action: .extend(by: nil),
            actor: .user("cid")),
        Clash(
            name: "extend by a stranger where none is allowed", first: .notConnected, second: .limitReached,
            scene: .running(PolicyRequest(maxExtensions: 0)), action: .extend(by: nil),
            actor: .user("cid")),
        Clash(
            name: "extend by a participant where moderators extend and none is allowed",
            first: .unauthorized, second: .limitReached,
            scene: .running(PolicyRequest(extenders: .moderators, maxExtensions: 0)),
            action: .extend(by: nil), actor: .user("bob"), now: .at(52)),
        Clash(
            name: "extend by a participant where moderators extend, before the window",
            first: .unauthorized, second: .windowNotOpen, scene: .running(moderatorsOnly),
            action: .extend(by: nil), actor: .user("bob")),
        Clash(
            name: "extend by a participant after a moderator extended", first: .unauthorized,
            second: .alreadyExtended, scene: extended(moderatorsOnly), action: .extend(by: nil),
            actor: .user("bob"), now: .at(53)),
        Clash(
            name: "extend by nobody before the window", first: .unauthorized, second: .windowNotOpen,
            scene: .running(), action: .extend(by: nil), actor: .nobody),
        Clash(
            name: "extend by nobody where none is allowed", first: .unauthorized, second: .limitReached,
            scene: .running(PolicyRequest(maxExtensions: 0)), action: .extend(by: nil), actor: .nobody),
        Clash(
            name: "extend again when all are used", first: .limitReached, second: .alreadyExtended,
            scene: extended(PolicyRequest(maxExtensions: 1)), action: .extend(by: nil),
            actor: .user("bob"), now: .at(53)),
        Clash(
            name: "extend again when the longest session is reached", first: .limitReached,
            second: .alreadyExtended, scene: extended(PolicyRequest(maxTotal: .minutes(79))),
            action: .extend(by: nil), actor: .user("bob"), now: .at(53)),
        Clash(
            name: "extend before the window where none is allowed", first: .limitReached,
            second: .windowNotOpen, scene: .running(PolicyRequest(maxExtensions: 0)),
            action: .extend(by: nil), actor: .user("bob")),
        Clash(
            name: "extend before the window where none fits", first: .limitReached,
            second: .windowNotOpen, scene: .running(PolicyRequest(maxTotal: .minutes(69))),
            action: .extend(by: nil), actor: .backend),
        Clash(
            name: "extend a waiting session where none fits its planned duration", first: .limitReached,
            second: .windowNotOpen, scene: waiting(PolicyRequest(maxTotal: .minutes(69))),
            action: .extend(by: nil), actor: .user("bob")),
        Clash(
            name: "extend a waiting session where none is allowed", first: .limitReached,
            second: .windowNotOpen, scene: waiting(PolicyRequest(maxExtensions: 0)),
            action: .extend(by: nil), actor: .user("bob")),
        Clash(
            name: "destroy a waiting session as a participant", first: .unauthorized, second: .windowNotOpen,
            scene: waiting(PolicyRequest()), action: .destroy, actor: .user("bob")),
    ]
}

@Suite("Refusals in the order of the contract's table")
struct RefusalOrderTests {
    @Test("Of two refusals that apply the first is given, and nothing changes", arguments: Clash.all)
    func firstThatApplies(_ clash: Clash) {
        var scene = clash.scene
        let step = scene.perform(clash.action, by: clash.actor, at: clash.now)
        #expect(step.reason == clash.first)
        #expect(step.refusal?.message.isEmpty == false)
        #expect(scene.room == clash.scene.room || !step.log.isEmpty)
        #expect(step.transition.participant == nil)
    }

    @Test("The table of clashes names every pair in the table's order")
    func clashesAreOrdered() throws {
        let table = Refusal.Reason.allCases
        for clash in Clash.all {
            let first = try #require(table.firstIndex(of: clash.first))
            let second = try #require(table.firstIndex(of: clash.second))
            #expect(first < second, "\(clash.name)")
        }
    }

    @Test("The reasons and codes are those of the contract")
    func codes() {
        let table = Refusal.Reason.allCases.map { "\($0.rawValue) \($0.code)" }
        #expect(
            table == [
                "invalid_command 6008", "id_reused 6009", "unknown_room 6002", "invalid_policy 6007",
                "session_over 6010", "no_session 6003", "not_connected 6001", "unauthorized 5116",
                "limit_reached 6006", "already_extended 6005", "window_not_open 6004",
            ])
    }

    @Test("A refused extend still announces what came due, as not extendable where a limit forbids it")
    func refusalKeepsWhatCameDue() {
        var scene = Scene.running(PolicyRequest(maxExtensions: 0))
        let step = scene.extend("bob", at: .at(50))
        #expect(step.answer == "limit_reached")
        #expect(step.log == ["window 1"])
        #expect(step.window?.isExtendable == false)
        #expect(step.transition.isChange)
    }

    @Test("Only a refusal about windows says when one opens, and only one after a grant who extended")
    func details() {
        var scene = Scene.running()
        let early = scene.extend("bob", at: .at(49)).refusal
        #expect(early?.opensAt == .at(50))
        #expect(early?.extendedBy == nil)
        scene.perform(.extend(by: nil), by: .backend, at: .at(50))
        let again = scene.extend("bob", at: .at(50)).refusal
        #expect(again?.reason == .alreadyExtended)
        #expect(again?.opensAt == .at(60))
        #expect(again?.extendedBy == .operator("backend"))
        let stranger = scene.extend("cid", at: .at(50)).refusal
        #expect(stranger?.opensAt == nil)
        #expect(stranger?.extendedBy == nil)
    }

    @Test("A repeat or a reused key is answered without deciding, and brings the room up to date")
    func refuseWithoutDeciding() {
        var scene = Scene.running()
        scene.extend("bob", at: .at(52))
        let decision = scene.room.refuse(Refusal(.idReused, "used before"), at: .at(60))
        #expect(decision.outcome == .refused(Refusal(.idReused, "used before")))
        #expect(decision.transition.events.map { $0.kind.brief } == ["window 1"])
        #expect(decision.transition.isChange)
    }
}
