import RoomCore
import Testing

@Suite("Rooms that a join opens")
struct AdhocRoomTests {
    static func scene(minutes: Int64 = 60) -> Scene {
        Scene(settings: RoomSettings(adhoc: true, duration: .minutes(minutes)))
    }

    @Test("A join to an unknown room opens it with the defaults first")
    func joinOpens() {
        var scene = Self.scene()
        let step = scene.join("ann", .viewer, at: .at(0))
        #expect(step.log == ["opened", "started", "joined ann"])
        #expect(step.transition.events.map { $0.session } == [nil, 1, 1])
        #expect(step.transition.events.map { $0.sequence } == [1, 2, 3])
        var opened = Scene.opened()
        #expect(scene.room.definition == opened.room.definition)
        opened.join("ann", .viewer, at: .at(0))
        #expect(scene.snapshot(at: .at(0)) == opened.snapshot(at: .at(0)))
    }

    @Test("It takes the configured duration, and a window that is open from the start comes last")
    func configuredDuration() {
        var scene = Self.scene(minutes: 8)
        #expect(scene.join("ann", at: .at(0)).log == ["opened", "started", "joined ann", "window 1"])
        #expect(scene.snapshot(at: .at(0))?.endsAt == .at(8))
    }

    @Test("Without it a join to an unknown room is refused")
    func off() {
        var scene = Scene()
        #expect(scene.join("ann", at: .at(0)).answer == "unknown_room")
        #expect(scene.room == Room(id: "demo"))
    }

    @Test("It concerns joins only")
    func joinsOnly() {
        for action in [Command.Action.leave, .extend(by: nil), .destroy, .status] {
            var scene = Self.scene()
            let step = scene.perform(action, by: .user("ann"), at: .at(0))
            #expect(step.answer == "unknown_room")
            #expect(!step.transition.isChange)
        }
    }

    @Test("It does not bring a room back whose session is over")
    func notAfterAnEnd() {
        var scene = Self.scene()
        scene.join("ann", .moderator, at: .at(0))
        scene.destroy("ann", at: .at(1))
        #expect(scene.join("ann", at: .at(2)).answer == "session_over")
    }

    @Test("It opens a room that was pruned, which goes on with its numbers")
    func afterPruning() {
        var scene = Scene(
            Room(id: "demo", sequence: 9, sessionNumber: 2), settings: RoomSettings(adhoc: true))
        let events = scene.join("ann", at: .at(0)).transition.events
        #expect(events.map { $0.session } == [2, 3, 3])
        #expect(events.map { $0.sequence } == [10, 11, 12])
    }
}
