import RoomCore
import Testing

@Suite("What starts a session")
struct SessionClockTests {
    static let byOpen = PolicyRequest(clock: .open)

    @Test("With clock first-join the first join of any role starts it", arguments: Role.allCases)
    func firstJoin(_ role: Role) {
        var scene = Scene.opened()
        #expect(scene.tick(at: .at(5)).log.isEmpty)
        let step = scene.join("ann", role, at: .at(7))
        #expect(
            step.kinds == [
                .sessionStarted(
                    startedAt: .at(7), endsAt: .at(67), duration: .minutes(60), nextDueAt: .at(57)),
                .participantJoined(user: "ann", role: role, connected: 1),
            ])
        #expect(step.transition.events.map { $0.session } == [1, 1])
        #expect(scene.room.dueAt == .at(57))
        #expect(scene.join("bob", at: .at(8)).log == ["joined bob"])
    }

    @Test("With clock open the open starts it, before anybody joins")
    func open() {
        var scene = Scene()
        let step = scene.open(Self.byOpen, at: .at(0))
        #expect(step.log == ["opened", "started"])
        #expect(step.transition.events.map { $0.session } == [nil, 1])
        #expect(scene.snapshot(at: .at(0))?.connected == 0)
        #expect(scene.snapshot(at: .at(0))?.endsAt == .at(60))
        #expect(scene.join("ann", at: .at(30)).log == ["joined ann"])
        #expect(scene.snapshot(at: .at(30))?.endsAt == .at(60))
    }

    @Test("With clock open a session that starts inside a window has it announced at once")
    func openInsideWindow() {
        var scene = Scene()
        let step = scene.open(minutes: 3, Self.byOpen, at: .at(0))
        #expect(step.log == ["opened", "started", "window 2"])
        #expect(step.window?.lateBy == .zero)
    }

    @Test("With clock open the session runs and ends although nobody ever came")
    func nobodyCame() {
        var scene = Scene.opened(Self.byOpen)
        let step = scene.tick(at: .at(60))
        #expect(step.log == ["ended elapsed"])
        #expect(step.ended?.participants == 0)
    }

    @Test("An equal open during a session of clock open sends nothing; after its end it starts the next")
    func openAgain() {
        var scene = Scene.opened(Self.byOpen)
        #expect(scene.open(Self.byOpen, at: .at(10)).log.isEmpty)
        #expect(scene.open(Self.byOpen, at: .at(60)).log == ["ended elapsed", "opened", "started"])
        #expect(scene.events.suffix(3).map { $0.session } == [1, 1, 2])
        #expect(scene.join("ann", at: .at(120)).answer == "session_over")
    }

    @Test("Defined anew with clock open before its first session, a room starts it")
    func redefinedBeforeSession() {
        var scene = Scene.opened()
        #expect(scene.open(Self.byOpen, at: .at(5)).log == ["opened", "started"])
    }

    @Test("Defined with clock open during a session, a room does not start another")
    func redefinedDuringSession() {
        var scene = Scene.running()
        #expect(scene.open(Self.byOpen, at: .at(5)).log == ["opened"])
        #expect(scene.room.sessionNumber == 1)
        #expect(scene.tick(at: .at(60)).log == ["ended elapsed"])
        #expect(scene.tick(at: .at(61)).log.isEmpty)
        #expect(scene.open(Self.byOpen, at: .at(62)).log == ["opened", "started"])
    }

    @Test("With clock open and reopen join a join after an end starts the next session")
    func openAndRejoin() {
        var scene = Scene.opened(PolicyRequest(clock: .open, reopen: .join))
        scene.tick(at: .at(60))
        #expect(scene.join("ann", at: .at(70)).log == ["started", "joined ann"])
        #expect(scene.snapshot(at: .at(70))?.endsAt == .at(130))
    }

    @Test("With reopen join every join after an end starts the next session, empty")
    func reopenByJoin() {
        var scene = Scene.running(PolicyRequest(reopen: .join))
        scene.destroy("ann", at: .at(10))
        let step = scene.join("bob", .viewer, at: .at(11))
        #expect(step.log == ["started", "joined bob"])
        #expect(step.transition.events.map { $0.session } == [2, 2])
        #expect(scene.snapshot(at: .at(11))?.connected == 1)
        #expect(scene.extend("ann", at: .at(62)).answer == "not_connected")
    }

    @Test("The clock goes on when the room is empty")
    func emptyRoom() {
        var scene = Scene.running()
        scene.leave("ann", at: .at(1))
        #expect(
            scene.leave("bob", at: .at(2)).kinds == [
                .participantLeft(user: "bob", role: .participant, connected: 0)
            ])
        #expect(scene.tick(at: .at(50)).log == ["window 1"])
        #expect(scene.join("bob", at: .at(51)).log == ["joined bob"])
        #expect(scene.snapshot(at: .at(51))?.startedAt == .at(0))
        #expect(scene.tick(at: .at(60)).ended?.participants == 1)
    }
}
