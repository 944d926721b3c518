import RoomCore
import Testing

@Suite("Sessions that wait for their first moderator")
struct WaitingSessionTests {
    static let byModerator = PolicyRequest(clock: .firstModerator)

    static func waiting(
        minutes: Int64 = 60, moderators: [UserID]? = nil, _ policy: PolicyRequest = byModerator
    ) -> Scene {
        var scene = Scene.opened(minutes: minutes, moderators: moderators, policy)
        scene.join("bob", at: .at(1))
        return scene
    }

    @Test(
        "A join by anybody else makes a numbered session without start, end or windows",
        arguments: [Role.participant, .viewer])
    func earlierJoin(_ role: Role) throws {
        var scene = Scene.opened(Self.byModerator)
        let step = scene.join("bob", role, at: .at(1))
        #expect(step.kinds == [.participantJoined(user: "bob", role: role, connected: 1)])
        #expect(step.transition.events.map { $0.session } == [1])
        let shown = try #require(scene.snapshot(at: .at(1)))
        #expect(shown.number == 1)
        #expect(shown.state == .waiting)
        #expect(shown.connected == 1)
        #expect(shown.extensions == 0)
        #expect(shown.startedAt == nil)
        #expect(shown.endsAt == nil)
        #expect(shown.timeLeft == nil)
        #expect(shown.window == nil)
        #expect(shown.nextWindowAt == nil)
        #expect(shown.endedAt == nil)
        #expect(shown.cause == nil)
        #expect(scene.room.dueAt == nil)
    }

    @Test("The first moderator's join starts it")
    func moderatorJoins() {
        var scene = Self.waiting()
        let step = scene.join("ann", .moderator, at: .at(30))
        #expect(
            step.kinds == [
                .sessionStarted(
                    startedAt: .at(30), endsAt: .at(90), duration: .minutes(60), nextDueAt: .at(80)),
                .participantJoined(user: "ann", role: .moderator, connected: 2),
            ])
        #expect(step.transition.events.map { $0.session } == [1, 1])
        #expect(scene.room.dueAt == .at(80))
        #expect(scene.people["bob"]?.joinedAt == .at(1))
    }

    @Test("A moderator who comes first starts it at once, as with clock first-join")
    func moderatorFirst() {
        var scene = Scene.opened(Self.byModerator)
        #expect(scene.join("ann", .moderator, at: .at(2)).log == ["started", "joined ann"])
        #expect(scene.snapshot(at: .at(2))?.startedAt == .at(2))
    }

    @Test("A change of role to moderator starts it: started, the role, then an open window")
    func roleStarts() {
        var scene = Self.waiting(minutes: 7)
        #expect(scene.join("bob", .viewer, at: .at(2)).log == ["bob is viewer"])
        #expect(scene.snapshot(at: .at(2))?.state == .waiting)
        let step = scene.join("bob", .moderator, at: .at(3))
        #expect(step.log == ["started", "bob is moderator", "window 1"])
        #expect(step.window?.dueAt == .at(3))
        #expect(step.window?.lateBy == .zero)
        #expect(step.window?.nextDueAt == .at(5))
        #expect(scene.snapshot(at: .at(3))?.startedAt == .at(3))
    }

    @Test("A moderator's join starts it: started, joined, then an open window")
    func joinStartsInsideWindow() {
        var scene = Self.waiting(minutes: 7)
        #expect(scene.join("ann", .moderator, at: .at(3)).log == ["started", "joined ann", "window 1"])
    }

    @Test("A second moderator does not start it again")
    func secondModerator() {
        var scene = Self.waiting()
        scene.join("ann", .moderator, at: .at(2))
        #expect(scene.join("bob", .moderator, at: .at(3)).log == ["bob is moderator"])
        #expect(scene.join("cid", .moderator, at: .at(4)).log == ["joined cid"])
        #expect(scene.snapshot(at: .at(4))?.startedAt == .at(2))
    }

    @Test("The list of moderators decides who starts it")
    func listDecides() {
        var scene = Self.waiting(moderators: ["ann"])
        #expect(scene.join("cid", .moderator, at: .at(2)).log == ["joined cid"])
        #expect(scene.join("bob", .moderator, at: .at(2)).log.isEmpty)
        #expect(scene.snapshot(at: .at(2))?.state == .waiting)
        #expect(scene.join("ann", .viewer, at: .at(3)).log == ["started", "joined ann"])
    }

    @Test("It never ends by time")
    func neverEnds() {
        var scene = Self.waiting()
        for now in [Instant.at(61), .at(100_000), .latest] { #expect(scene.tick(at: now).log.isEmpty) }
        #expect(scene.join("ann", .moderator, at: .at(100_001)).log == ["started", "joined ann"])
        #expect(scene.snapshot(at: .at(100_001))?.endsAt == .at(100_061))
    }

    @Test("It goes on waiting when the room is empty")
    func emptyRoom() {
        var scene = Self.waiting()
        #expect(scene.leave("bob", at: .at(2)).log == ["left bob"])
        #expect(scene.snapshot(at: .at(2))?.state == .waiting)
        #expect(scene.join("ann", .moderator, at: .at(3)).transition.events.map { $0.session } == [1, 1])
    }

    @Test("Extend is refused as window_not_open, with no opening")
    func extend() {
        var scene = Self.waiting()
        for actor in [Actor.user("bob"), .backend] {
            let step = scene.perform(.extend(by: nil), by: actor, at: .at(2))
            #expect(step.answer == "window_not_open")
            #expect(step.refusal?.opensAt == nil)
            #expect(step.refusal?.extendedBy == nil)
        }
    }

    @Test(
        "Its limits are judged on the planned duration, before window_not_open",
        arguments: [4_140_000, 4_199_999, 4_200_000, 4_200_001] as [Int64])
    func limits(_ total: Int64) {
        let answer = total < 4_200_000 ? "limit_reached" : "window_not_open"
        var policy = Self.byModerator
        policy.maxTotal = .ms(total)
        var scene = Self.waiting(policy)
        #expect(scene.extend("bob", at: .at(2)).answer == answer)
    }

    @Test("An open during it sets only the next definition: the planned duration stays")
    func openDuring() {
        var scene = Self.waiting()
        let step = scene.open(minutes: 20, moderators: ["bob"], at: .at(2))
        #expect(step.log == ["opened"])
        #expect(step.transition.events.map { $0.session } == [1])
        #expect(scene.join("cid", .participant, at: .at(3)).log == ["joined cid"])
        #expect(scene.join("ann", .moderator, at: .at(4)).log == ["started", "joined ann"])
        #expect(scene.snapshot(at: .at(4))?.endsAt == .at(64))
        scene.tick(at: .at(64))
        #expect(scene.join("bob", at: .at(65)).answer == "session_over")
    }

    @Test("An open with clock open during it does not start it")
    func openClockDuring() {
        var scene = Self.waiting()
        #expect(scene.open(PolicyRequest(clock: .open), at: .at(2)).log == ["opened"])
        #expect(scene.snapshot(at: .at(2))?.state == .waiting)
    }

    @Test("An operator may end it: the end has no start and no planned end")
    func destroy() throws {
        var scene = Self.waiting()
        #expect(scene.destroy("bob", at: .at(2)).answer == "unauthorized")
        let step = scene.perform(.destroy, by: .backend, at: .at(3))
        #expect(
            step.kinds == [
                .sessionEnded(
                    EndNotice(
                        cause: .destroyed, by: nil, startedAt: nil, endsAt: nil, endedAt: .at(3),
                        lateBy: .zero, extensions: 0, participants: 1))
            ])
        let shown = try #require(scene.snapshot(at: .at(3)))
        #expect(shown.state == .ended)
        #expect(shown.timeLeft == .zero)
        #expect(shown.cause == .destroyed)
        #expect(shown.endedAt == .at(3))
        #expect(shown.startedAt == nil)
        #expect(scene.join("bob", at: .at(4)).answer == "session_over")
        scene.open(Self.byModerator, at: .at(5))
        #expect(scene.join("bob", at: .at(5)).transition.events.map { $0.session } == [2])
    }

    @Test("With reopen join a join after an end makes the next waiting session")
    func nextWaits() {
        var scene = Scene.opened(PolicyRequest(clock: .firstModerator, reopen: .join))
        scene.join("ann", .moderator, at: .at(0))
        scene.destroy("ann", at: .at(1))
        #expect(scene.join("bob", at: .at(2)).log == ["joined bob"])
        #expect(scene.snapshot(at: .at(2))?.state == .waiting)
        #expect(scene.snapshot(at: .at(2))?.number == 2)
        #expect(scene.join("ann", .moderator, at: .at(3)).log == ["started", "joined ann"])
    }

    @Test("Its time never runs back either")
    func neverBack() {
        var scene = Self.waiting()
        let step = scene.join("ann", .moderator, at: .at(0))
        #expect(step.judgedAt == .at(1))
        #expect(scene.snapshot(at: .at(1))?.startedAt == .at(1))
    }
}
