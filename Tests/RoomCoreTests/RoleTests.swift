import RoomCore
import Testing

/// What a join gets under a list of moderators.
struct RoleCase: Sendable, CustomTestStringConvertible {
    let list: [UserID]?
    let asked: Role?
    let got: Role

    var testDescription: String {
        "list \(list?.map { $0.text }.description ?? "none"), asks \(asked?.rawValue ?? "nothing")"
    }

    /// As ann sees it.
    static let all: [RoleCase] = [
        RoleCase(list: nil, asked: nil, got: .participant),
        RoleCase(list: nil, asked: .moderator, got: .moderator),
        RoleCase(list: nil, asked: .participant, got: .participant),
        RoleCase(list: nil, asked: .viewer, got: .viewer),
        RoleCase(list: ["bob", "ann"], asked: nil, got: .moderator),
        RoleCase(list: ["ann"], asked: .moderator, got: .moderator),
        RoleCase(list: ["ann"], asked: .participant, got: .moderator),
        RoleCase(list: ["ann"], asked: .viewer, got: .moderator),
        RoleCase(list: ["bob"], asked: nil, got: .participant),
        RoleCase(list: ["bob"], asked: .moderator, got: .participant),
        RoleCase(list: ["bob"], asked: .participant, got: .participant),
        RoleCase(list: ["bob"], asked: .viewer, got: .viewer),
        RoleCase(list: [], asked: nil, got: .participant),
        RoleCase(list: [], asked: .moderator, got: .participant),
        RoleCase(list: [], asked: .participant, got: .participant),
        RoleCase(list: [], asked: .viewer, got: .viewer),
        RoleCase(list: ["Ann", "ann "], asked: .moderator, got: .participant),
    ]
}

@Suite("Roles: who is a moderator, and what joining again changes")
struct RoleTests {
    @Test("A list of moderators decides; without one the role asked for counts", arguments: RoleCase.all)
    func joining(_ row: RoleCase) {
        var scene = Scene.opened(moderators: row.list)
        let step = scene.join("ann", row.asked, at: .at(0))
        #expect(step.outcome == .joined(role: row.got))
        #expect(step.kinds.last == .participantJoined(user: "ann", role: row.got, connected: 1))
        #expect(
            step.transition.participant
                == .connected(Participant(user: "ann", role: row.got, joinedAt: .at(0))))
    }

    @Test("The list decides again when somebody joins again with a role", arguments: RoleCase.all)
    func joiningAgain(_ row: RoleCase) throws {
        var scene = Scene.opened(moderators: row.list)
        let before = try #require(scene.join("ann", .viewer, at: .at(0)).outcome)
        let step = scene.join("ann", row.asked, at: .at(1))
        if row.asked == nil {
            #expect(step.outcome == before)
            #expect(step.log.isEmpty)
        } else {
            #expect(step.outcome == .joined(role: row.got))
            #expect(step.log == (before == .joined(role: row.got) ? [] : ["ann is \(row.got.rawValue)"]))
        }
        #expect(scene.snapshot(at: .at(1))?.connected == 1)
        #expect(scene.people["ann"]?.joinedAt == .at(0))
    }

    @Test("Joining again without a role, or with the same one, changes nothing at all")
    func joiningAgainUnchanged() {
        var scene = Scene.running()
        for (user, role) in [("ann", nil), ("ann", .moderator), ("bob", nil), ("bob", Role.participant)]
            as [(UserID, Role?)]
        {
            let before = scene.room
            let step = scene.join(user, role, at: .at(10))
            #expect(step.answer == (user == "ann" ? "moderator" : "participant"))
            #expect(step.log.isEmpty)
            #expect(!step.transition.isChange)
            #expect(step.transition.participant == nil)
            #expect(scene.room == before)
        }
    }

    @Test("A change of role is said once, with the number connected, and keeps when its user joined")
    func roleChange() {
        var scene = Scene.running()
        let step = scene.join("bob", .viewer, at: .at(10))
        #expect(step.kinds == [.participantRoleChanged(user: "bob", role: .viewer, connected: 2)])
        #expect(
            step.transition.participant
                == .connected(Participant(user: "bob", role: .viewer, joinedAt: .at(0))))
        #expect(scene.join("bob", .viewer, at: .at(11)).log.isEmpty)
    }

    @Test("A role that was changed is the one that counts")
    func changedRoleCounts() {
        var scene = Scene.running(PolicyRequest(extenders: .moderators))
        #expect(scene.destroy("bob", at: .at(1)).answer == "unauthorized")
        scene.join("bob", .moderator, at: .at(2))
        scene.join("ann", .viewer, at: .at(2))
        #expect(scene.destroy("ann", at: .at(3)).answer == "unauthorized")
        #expect(scene.extend("ann", at: .at(50)).answer == "unauthorized")
        #expect(scene.extend("bob", at: .at(50)).answer == "+10m")
        #expect(scene.destroy("bob", at: .at(51)).log == ["acknowledged bob", "ended destroyed"])
    }

    @Test("Who may do what", arguments: Role.allCases, [Extenders.anyone, .moderators])
    func rights(_ role: Role, _ extenders: Extenders) {
        var scene = Scene.opened(PolicyRequest(extenders: extenders))
        scene.join("cid", role, at: .at(0))
        let mayExtend = extenders == .anyone || role == .moderator
        #expect(scene.extend("cid", at: .at(50)).answer == (mayExtend ? "+10m" : "unauthorized"))
        let step = scene.destroy("cid", at: .at(51))
        #expect(step.answer == (role == .moderator ? "done" : "unauthorized"))
        #expect(step.refusal?.reason.code == (role == .moderator ? nil : 5116))
        #expect(scene.leave("cid", at: .at(52)).answer == (role == .moderator ? "no_session" : "done"))
    }

    @Test("An operator extends and destroys where only moderators may, without being in the room")
    func operators() {
        var scene = Scene.running(PolicyRequest(extenders: .moderators))
        let extended = scene.perform(.extend(by: nil), by: .backend, at: .at(50))
        #expect(extended.answer == "+10m")
        #expect(extended.extended?.by == .operator("backend"))
        let step = scene.perform(.destroy, by: .backend, at: .at(51))
        #expect(step.log == ["ended destroyed"])
        #expect(step.ended?.by == nil)
        #expect(step.ended?.participants == 2)
    }

    @Test("Nobody in particular may neither extend nor destroy")
    func nobody() {
        var scene = Scene.running()
        #expect(scene.perform(.extend(by: nil), at: .at(50)).answer == "unauthorized")
        #expect(scene.perform(.destroy, at: .at(50)).answer == "unauthorized")
    }

    @Test("A join or leave without a user, which no decoder lets through, is refused and changes nothing")
    func withoutUser() {
        for action in [Command.Action.join(role: .moderator), .leave] {
            for actor in [Actor.nobody, .backend] {
                var scene = Scene.running()
                let step = scene.perform(action, by: actor, at: .at(10))
                #expect(step.refusal != nil)
                #expect(!step.transition.isChange)
                #expect(scene.people.count == 2)
            }
        }
    }

    @Test("Whoever left is not connected, and comes back as somebody new")
    func leaving() {
        var scene = Scene.running()
        let left = scene.leave("bob", at: .at(5))
        #expect(left.kinds == [.participantLeft(user: "bob", role: .participant, connected: 1)])
        #expect(left.transition.participant == .left("bob"))
        #expect(scene.leave("bob", at: .at(6)).answer == "not_connected")
        #expect(scene.extend("bob", at: .at(50)).answer == "not_connected")
        let back = scene.join("bob", .viewer, at: .at(51))
        #expect(back.kinds == [.participantJoined(user: "bob", role: .viewer, connected: 2)])
        #expect(scene.people["bob"]?.joinedAt == .at(51))
    }

    @Test("The end disconnects everybody without saying that they left")
    func endDisconnects() {
        var scene = Scene.running()
        #expect(scene.tick(at: .at(60)).log == ["ended elapsed"])
        #expect(scene.snapshot(at: .at(60))?.connected == 0)
        #expect(scene.leave("bob", at: .at(60)).answer == "no_session")
    }

    @Test("A connection of an older session does not count in the next")
    func olderConnection() {
        var scene = Scene.running(PolicyRequest(reopen: .join))
        let stale = Participant(user: "ann", role: .moderator, joinedAt: .at(0))
        let command = Command(room: "demo", user: "ann", action: .join(role: .viewer))
        let decision = scene.room.decide(command, by: .user("ann"), participant: stale, at: .at(60))
        #expect(decision.outcome == .joined(role: .viewer))
        #expect(
            decision.transition.events.map { $0.kind.brief } == ["ended elapsed", "started", "joined ann"])
        scene.tick(at: .at(60))
        let destroy = Command(room: "demo", user: "ann", action: .destroy)
        let refused = scene.room.decide(destroy, by: .user("ann"), participant: stale, at: .at(61))
        #expect(
            Step(before: scene.room, transition: refused.transition, outcome: refused.outcome).answer
                == "no_session")
    }
}
