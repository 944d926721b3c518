import RoomCore
import Testing

@Suite("A scheduler that was silent, and clocks that step")
struct LateFiringTests {
    @Test("Silent until inside the final window, only that is announced, with the true time left")
    func finalWindowOnly() {
        var scene = Scene.running()
        let step = scene.tick(at: .at(57, 30_000))
        #expect(
            step.kinds == [
                .windowOpened(
                    WindowNotice(
                        timeLeft: .seconds(150), window: 2, isFinal: true, isExtendable: true, extensions: 0,
                        endsAt: .at(60), nextDueAt: .at(60), dueAt: .at(55), lateBy: .seconds(150)))
            ])
        #expect(scene.room.dueAt == .at(60))
    }

    @Test("A late first window says how late it is")
    func lateFirstWindow() {
        var scene = Scene.running()
        let notice = scene.tick(at: .at(52, 1)).window
        #expect(notice?.window == 1)
        #expect(notice?.timeLeft == .ms(8 * 60_000 - 1))
        #expect(notice?.dueAt == .at(50))
        #expect(notice?.lateBy == .ms(2 * 60_000 + 1))
        #expect(notice?.nextDueAt == .at(55))
        #expect(notice?.isFinal == false)
    }

    @Test("Silent until after the end, only the end is said, with how late it was")
    func endOnly() {
        var scene = Scene.running()
        let step = scene.tick(at: .at(63))
        #expect(
            step.kinds == [
                .sessionEnded(
                    EndNotice(
                        cause: .elapsed, by: nil, startedAt: .at(0), endsAt: .at(60), endedAt: .at(63),
                        lateBy: .minutes(3), extensions: 0, participants: 2))
            ])
        #expect(scene.room.dueAt == nil)
        #expect(scene.tick(at: .at(64)).log.isEmpty)
    }

    @Test("Of eight windows only the latest open one is announced, then each that follows")
    func skippedWindows() {
        var scene = Shape.eight.running
        #expect(scene.tick(at: .at(56, 59_999)).log == ["window 5"])
        #expect(scene.tick(at: .at(57)).log == ["window 6"])
        #expect(scene.tick(at: .at(59)).log == ["window 8"])
    }

    @Test("Extend works without a scheduler and announces the open window first")
    func extendWithoutScheduler() {
        var scene = Scene.running()
        #expect(scene.extend("bob", at: .at(56)).log == ["window 2", "extended 10m"])
        #expect(scene.extend("ann", at: .at(61)).log == ["window 1", "extended 10m"])
        #expect(scene.snapshot(at: .at(61))?.endsAt == .at(80))
        #expect(scene.snapshot(at: .at(61))?.extensions == 2)
    }

    @Test("After an extension all windows come anew, once each")
    func windowsComeAnew() {
        var scene = Scene.running()
        for minute: Int64 in 1...200 {
            scene.tick(at: .at(minute))
            if minute == 52 { scene.extend("bob", at: .at(52)) }
        }
        let said = scene.events.compactMap { event -> String? in
            if case .windowOpened(let notice) = event.kind {
                return "\(notice.extensions)/\(notice.window) at \((event.time - Instant.at(0)).brief)"
            }
            return nil
        }
        #expect(said == ["0/1 at 50m", "1/1 at 60m", "1/2 at 65m"])
        #expect(scene.events.last?.time == .at(70))
    }

    @Test("An overdue session is ended by whatever command comes first, refused or not")
    func anyCommandEnds() {
        let commands: [(Command.Action, Actor, String)] = [
            (.status, .nobody, "done"), (.extend(by: nil), .user("bob"), "no_session"),
            (.destroy, .user("ann"), "no_session"), (.leave, .user("bob"), "no_session"),
            (.join(role: nil), .user("cid"), "session_over"), (.extend(by: nil), .nobody, "no_session"),
            (.open(OpenRequest(policy: PolicyRequest(windows: []))), .nobody, "invalid_policy"),
        ]
        for (action, actor, answer) in commands {
            var scene = Scene.running()
            let step = scene.perform(action, by: actor, at: .at(61))
            #expect(step.log == ["ended elapsed"])
            #expect(step.answer == answer)
            #expect(step.transition.isChange)
            #expect(step.transition.participant == nil)
        }
    }

    @Test("An overdue session ends before the next of its room starts")
    func endBeforeStart() {
        var scene = Scene.running(minutes: 8, PolicyRequest(reopen: .join))
        let step = scene.join("cid", at: .at(30))
        #expect(step.log == ["ended elapsed", "started", "joined cid", "window 1"])
        #expect(step.transition.events.map { $0.session } == [1, 2, 2, 2])
        #expect(scene.people.keys.sorted() == ["cid"])
        #expect(scene.snapshot(at: .at(30))?.connected == 1)
        #expect(scene.snapshot(at: .at(30))?.startedAt == .at(30))
    }

    @Test("A session's time never runs back behind its last change")
    func neverBack() {
        var scene = Scene.running()
        scene.join("cid", at: .at(30))
        for action in [Command.Action.status, .leave, .extend(by: nil)] {
            let step = scene.perform(action, by: .user("cid"), at: .at(20))
            #expect(step.judgedAt == .at(30))
            #expect(step.transition.events.allSatisfy { $0.time == .at(30) })
        }
        #expect(scene.snapshot(at: .at(30))?.timeLeft == .minutes(30))
    }

    @Test("An idle tick is no change: the time may be read earlier after it")
    func idleTickDoesNotPin() {
        var scene = Scene.running()
        #expect(!scene.tick(at: .at(40)).transition.isChange)
        #expect(scene.status(at: .at(39)).judgedAt == .at(39))
    }

    @Test("An announced window stays open when the clock steps back before it")
    func announcedWindowStaysOpen() {
        for announced in [Instant.at(50), .at(55), .at(57)] {
            var scene = Scene.running()
            scene.tick(at: announced)
            #expect(scene.status(at: .at(10)).log.isEmpty)
            let step = scene.extend("bob", at: .at(49))
            #expect(step.answer == "+10m")
            #expect(step.judgedAt == announced)
        }
    }

    @Test("An extension is not undone by a clock that steps back: its window stays closed")
    func extensionStays() {
        var scene = Scene.running()
        scene.extend("bob", at: .at(52))
        let step = scene.extend("ann", at: .at(51))
        #expect(step.answer == "already_extended")
        #expect(step.judgedAt == .at(52))
        #expect(scene.tick(at: .at(55)).log.isEmpty)
    }

    @Test("A session that has ended stays ended when the clock steps back")
    func endStays() {
        var scene = Scene.running()
        scene.tick(at: .at(60))
        #expect(scene.extend("bob", at: .at(51)).answer == "no_session")
        #expect(scene.snapshot(at: .at(51))?.endedAt == .at(60))
    }

    @Test("A new session starts at the plain now, even before the last one's end")
    func newSessionAtPlainNow() {
        var joined = Scene.running(PolicyRequest(reopen: .join))
        joined.tick(at: .at(60))
        let step = joined.join("cid", at: .at(20))
        #expect(step.judgedAt == .at(20))
        #expect(joined.snapshot(at: .at(20))?.startedAt == .at(20))
        #expect(joined.snapshot(at: .at(20))?.endsAt == .at(80))

        var opened = Scene.opened(PolicyRequest(clock: .open))
        opened.tick(at: .at(60))
        opened.open(PolicyRequest(clock: .open), at: .at(20))
        #expect(opened.snapshot(at: .at(20))?.startedAt == .at(20))
    }
}
