import RoomCore
import Testing

/// What races at one instant.
enum Racer: String, CaseIterable, Sendable {
    case tick
    case extendByBob = "extend by bob"
    case extendByCid = "extend by cid"
    case destroy = "destroy by ann"

    static let orders: [[Racer]] = permutations(allCases)

    private static func permutations(_ racers: [Racer]) -> [[Racer]] {
        guard racers.count > 1 else { return [racers] }
        return racers.indices.flatMap { index in
            var rest = racers
            let first = rest.remove(at: index)
            return permutations(rest).map { [first] + $0 }
        }
    }

    func run(in scene: inout Scene, at now: Instant) -> Step {
        switch self {
        case .tick: scene.tick(at: now)
        case .extendByBob: scene.extend("bob", at: now)
        case .extendByCid: scene.extend("cid", at: now)
        case .destroy: scene.destroy("ann", at: now)
        }
    }
}

/// An instant of the default session of 60 minutes, and what is so there for whoever comes first.
struct RaceInstant: Sendable, CustomTestStringConvertible {
    let now: Instant
    /// What the first to come finds due.
    let due: [String]
    let isGrantable: Bool
    let isOver: Bool

    var testDescription: String { "\((now - Instant.at(0)).milliseconds) ms" }

    static let all: [RaceInstant] = [
        RaceInstant(now: .at(50, -1), due: [], isGrantable: false, isOver: false),
        RaceInstant(now: .at(50), due: ["window 1"], isGrantable: true, isOver: false),
        RaceInstant(now: .at(50, 1), due: ["window 1"], isGrantable: true, isOver: false),
        RaceInstant(now: .at(55, -1), due: ["window 1"], isGrantable: true, isOver: false),
        RaceInstant(now: .at(55), due: ["window 2"], isGrantable: true, isOver: false),
        RaceInstant(now: .at(55, 1), due: ["window 2"], isGrantable: true, isOver: false),
        RaceInstant(now: .at(60, -1), due: ["window 2"], isGrantable: true, isOver: false),
        RaceInstant(now: .at(60), due: ["ended elapsed"], isGrantable: false, isOver: true),
        RaceInstant(now: .at(60, 1), due: ["ended elapsed"], isGrantable: false, isOver: true),
    ]
}

@Suite("Commands that race at one instant")
struct RaceOrderTests {
    static func scene() -> Scene {
        var scene = Scene.running()
        scene.join("cid", at: .at(0))
        return scene
    }

    @Test("Every order of a tick, two extends and a destroy has one outcome", arguments: RaceInstant.all)
    func everyOrder(_ instant: RaceInstant) {
        #expect(Racer.orders.count == 24)
        for order in Racer.orders {
            var scene = Self.scene()
            let known = scene.events.count
            var isOver = instant.isOver
            var winner: Racer?
            for (place, racer) in order.enumerated() {
                let step = racer.run(in: &scene, at: instant.now)
                var log = place == 0 ? instant.due : []
                let answer: String
                switch racer {
                case .tick:
                    answer = "tick"
                case .destroy where isOver:
                    answer = "no_session"
                case .destroy:
                    answer = "done"
                    log += ["acknowledged ann", "ended destroyed"]
                    isOver = true
                case _ where isOver:
                    answer = "no_session"
                case _ where !instant.isGrantable:
                    answer = "window_not_open"
                    #expect(step.refusal?.opensAt == .at(50))
                case _ where winner != nil:
                    answer = "already_extended"
                    #expect(step.refusal?.opensAt == .at(60))
                    #expect(step.refusal?.extendedBy == .user(winner == .extendByBob ? "bob" : "cid"))
                default:
                    answer = "+10m"
                    log += ["extended 10m"]
                    winner = racer
                }
                #expect(step.answer == answer, "\(racer) in \(order)")
                #expect(step.log == log, "\(racer) in \(order)")
                #expect(step.judgedAt == instant.now)
            }
            expectSound(Array(scene.events[known...]), from: Int64(known), order: order)
            #expect(scene.room.session?.isLive == false)
        }
    }

    private func expectSound(_ events: [Event], from known: Int64, order: [Racer]) {
        let logs = events.map { $0.kind.brief }
        #expect(events.map { $0.sequence } == (1...Int64(events.count)).map { known + $0 })
        #expect(logs.count { $0.hasPrefix("ended") } == 1, "\(order)")
        #expect(logs.last?.hasPrefix("ended") == true, "\(order)")
        #expect(logs.count { $0.hasPrefix("extended") } <= 1, "\(order)")
        #expect(logs.count { $0.hasPrefix("window") } <= 1, "\(order)")
    }

    @Test("Destroyed after an extension, the session says the extended end as planned")
    func destroyAfterExtension() {
        var scene = Self.scene()
        scene.extend("bob", at: .at(55))
        let step = scene.destroy("ann", at: .at(55))
        #expect(step.ended?.cause == .destroyed)
        #expect(step.ended?.by == "ann")
        #expect(step.ended?.startedAt == .at(0))
        #expect(step.ended?.endsAt == .at(70))
        #expect(step.ended?.endedAt == .at(55))
        #expect(step.ended?.lateBy == .zero)
        #expect(step.ended?.extensions == 1)
        #expect(step.ended?.participants == 3)
    }

    @Test("An extension in the last millisecond saves the session, the one a millisecond later does not")
    func lastMillisecond() {
        var saved = Self.scene()
        #expect(saved.extend("bob", at: .at(60, -1)).answer == "+10m")
        #expect(saved.tick(at: .at(60)).log == ["window 1"])
        var lost = Self.scene()
        #expect(lost.extend("bob", at: .at(60)).answer == "no_session")
        #expect(lost.snapshot(at: .at(60))?.state == .ended)
    }

    @Test("A second extend waits for the new end's first window, to the millisecond")
    func windowClosesByGrant() {
        for opening in [Instant.at(50), .at(55)] {
            var scene = Self.scene()
            scene.extend("bob", at: opening)
            #expect(scene.extend("cid", at: opening).answer == "already_extended")
            #expect(scene.extend("bob", at: .at(60, -1)).answer == "already_extended")
            #expect(
                scene.extend("cid", at: .at(60)).outcome
                    == .extended(by: .minutes(10), endsAt: .at(80), extensions: 2))
            #expect(scene.extend("cid", at: .at(70, -1)).refusal?.extendedBy == .user("cid"))
        }
    }
}
