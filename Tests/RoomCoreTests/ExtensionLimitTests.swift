import RoomCore
import Testing

/// How much an extend is granted.
struct Grant: Sendable, CustomTestStringConvertible {
    let asked: TimeSpan?
    let answer: String
    var policy = PolicyRequest()

    var testDescription: String {
        "asks \(asked?.brief ?? "nothing"), total \(policy.maxTotal?.brief ?? "free"), gets \(answer)"
    }

    static let odd = PolicyRequest(
        extension: ExtensionRequest(min: .minutes(12), max: .minutes(40), default: .minutes(20)))
    static let fixed = PolicyRequest(extension: ExtensionRequest(min: .minutes(15), max: .minutes(15)))

    static func total(_ span: TimeSpan) -> PolicyRequest { PolicyRequest(maxTotal: span) }

    static let all: [Grant] = [
        Grant(asked: nil, answer: "+10m"), Grant(asked: .ms(1), answer: "+10m"),
        Grant(asked: .ms(599_999), answer: "+10m"), Grant(asked: .minutes(10), answer: "+10m"),
        Grant(asked: .ms(600_001), answer: "+600001ms"), Grant(asked: .minutes(29), answer: "+29m"),
        Grant(asked: .minutes(30), answer: "+30m"), Grant(asked: .ms(1_800_001), answer: "+30m"),
        Grant(asked: .longest, answer: "+30m"),
        Grant(asked: nil, answer: "+20m", policy: odd),
        Grant(asked: .minutes(1), answer: "+12m", policy: odd),
        Grant(asked: .minutes(12), answer: "+12m", policy: odd),
        Grant(asked: .minutes(41), answer: "+40m", policy: odd),
        Grant(asked: nil, answer: "+15m", policy: fixed),
        Grant(asked: .minutes(10), answer: "+15m", policy: fixed),
        Grant(asked: .minutes(20), answer: "+15m", policy: fixed),
        // A total that leaves room for less than the shortest, exactly it, a little more, and enough.
        Grant(asked: nil, answer: "limit_reached", policy: total(.minutes(60))),
        Grant(asked: .minutes(30), answer: "limit_reached", policy: total(.ms(70 * 60_000 - 1))),
        Grant(asked: nil, answer: "+10m", policy: total(.minutes(70))),
        Grant(asked: .minutes(30), answer: "+10m", policy: total(.minutes(70))),
        Grant(asked: .minutes(30), answer: "+600001ms", policy: total(.ms(70 * 60_000 + 1))),
        Grant(asked: nil, answer: "+10m", policy: total(.minutes(75))),
        Grant(asked: .minutes(14), answer: "+14m", policy: total(.minutes(75))),
        Grant(asked: .minutes(16), answer: "+15m", policy: total(.minutes(75))),
        Grant(asked: .minutes(30), answer: "+30m", policy: total(.minutes(90))),
        Grant(asked: .minutes(31), answer: "+30m", policy: total(.longest)),
    ]
}

@Suite("How much an extension grants, and what limits it")
struct ExtensionLimitTests {
    @Test("A wish is clamped, and shortened to what the longest session leaves", arguments: Grant.all)
    func granted(_ grant: Grant) {
        var scene = Scene.running(grant.policy)
        let notice = scene.tick(at: .at(55)).window
        #expect(notice?.isExtendable == (grant.answer != "limit_reached"))
        let step = scene.extend("bob", by: grant.asked, at: .at(56))
        #expect(step.answer == grant.answer)
        if case .extended(let span, let endsAt, let extensions) = step.outcome {
            let first = grant.policy.windows?.first ?? .minutes(10)
            #expect(endsAt == .at(60) + span)
            #expect(extensions == 1)
            #expect(
                step.kinds == [
                    .sessionExtended(
                        ExtensionNotice(
                            granted: span, by: .user("bob"), previousEndsAt: .at(60), endsAt: endsAt,
                            nextDueAt: endsAt - first, extensions: 1))
                ])
            #expect(scene.room.dueAt == endsAt - first)
        }
    }

    @Test(
        "The new end is the old end and the grant, whenever in the window it was asked for",
        arguments: [Instant.at(50), .at(53, 7), .at(55), .at(60, -1)])
    func fromOldEnd(_ now: Instant) {
        var scene = Scene.running()
        #expect(scene.extend("bob", at: now).extended?.endsAt == .at(70))
    }

    @Test("maxExtensions counts grants of a session, and starts anew with the next", arguments: [0, 1, 2, 5])
    func maxExtensions(_ most: Int64) {
        var scene = Scene.running(PolicyRequest(maxExtensions: most, reopen: .join))
        var end: Int64 = 60
        for session in 1...2 {
            for count in 0..<most {
                let step = scene.extend("bob", at: .at(end - 1))
                #expect(step.answer == "+10m", "session \(session)")
                #expect(step.window?.isExtendable == true)
                #expect(step.extended?.extensions == count + 1)
                end += 10
            }
            let step = scene.extend("bob", at: .at(end - 1))
            #expect(step.answer == "limit_reached")
            #expect(step.window?.isExtendable == false)
            #expect(scene.snapshot(at: .at(end))?.extensions == most)
            scene.join("bob", at: .at(end))
            end += 60
        }
    }

    @Test("Without a limit there is no cap on the number of extensions")
    func noCap() {
        var scene = Scene.running()
        for count: Int64 in 1...200 {
            let end = 50 + count * 10
            #expect(
                scene.extend("bob", at: .at(end - 10)).outcome
                    == .extended(by: .minutes(10), endsAt: .at(end + 10), extensions: count))
        }
    }

    @Test("maxTotal counts from start to end over all extensions")
    func totalOverAll() {
        var scene = Scene.running(PolicyRequest(maxTotal: .minutes(95)))
        #expect(scene.extend("bob", at: .at(55)).answer == "+10m")
        #expect(scene.extend("bob", by: .minutes(30), at: .at(65)).answer == "+25m")
        #expect(scene.snapshot(at: .at(65))?.endsAt == .at(95))
        let step = scene.extend("bob", at: .at(90))
        #expect(step.answer == "limit_reached")
        #expect(step.log == ["window 2"])
        #expect(step.window?.isExtendable == false)
        #expect(scene.tick(at: .at(95)).log == ["ended elapsed"])
    }

    @Test("A limit that is reached is said at any time, not only inside a window")
    func limitOutsideWindow() {
        var scene = Scene.running(PolicyRequest(maxTotal: .minutes(69)))
        for now in [Instant.at(1), .at(50), .at(60, -1)] {
            #expect(scene.extend("bob", at: now).answer == "limit_reached")
        }
        #expect(scene.extend("bob", at: .at(60)).answer == "no_session")
    }

    @Test("A grant no shorter than the longest window cannot reopen its own window")
    func ownWindow() {
        let policy = PolicyRequest(windows: [.minutes(20), .minutes(1)])
        var scene = Scene.running(policy)
        let step = scene.extend("bob", at: .at(60, -1))
        #expect(step.answer == "+20m")
        #expect(scene.room.dueAt == .at(60))
        #expect(scene.extend("ann", at: .at(60, -1)).answer == "already_extended")
        #expect(scene.extend("ann", at: .at(60)).answer == "+20m")
    }
}
