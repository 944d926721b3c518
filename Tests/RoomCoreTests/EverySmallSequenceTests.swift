import Testing

@testable import RoomCore

@Suite("A tiny session, tried out in full")
struct EverySmallSequenceTests {
    /// Six milliseconds, with windows of four and two and grants of four to six.
    static let request = OpenRequest(
        duration: .ms(6),
        policy: PolicyRequest(
            windows: [.ms(4), .ms(2)], extension: ExtensionRequest(min: .ms(4), max: .ms(6)),
            maxTotal: .ms(15)))

    static let acts: [(Command.Action?, Actor)] = [
        (nil, .nobody), (.extend(by: nil), .user("ann")), (.extend(by: .ms(6)), .backend),
        (.destroy, .user("ann")),
    ]

    @Test("Three acts of four kinds, at every millisecond in every order, do what the model predicts")
    func everySequence() {
        var model = NaiveModel(id: "demo")
        var scene = Scene()
        let start = Instant.at(0)
        for (action, actor) in [
            (Command.Action.open(Self.request), Actor.nobody), (.join(role: .moderator), .user("ann")),
        ] {
            _ = model.perform(action, by: actor, at: start.milliseconds, settings: scene.settings)
            scene.perform(action, by: actor, at: start)
        }
        var tried = 0
        var mismatches: [String] = []
        descend(3, from: model, scene, path: [], tried: &tried, mismatches: &mismatches)
        #expect(mismatches.first == nil)
        #expect(tried == 48 + 48 * 48 + 48 * 48 * 48)
    }

    private func descend(
        _ depth: Int, from model: NaiveModel, _ scene: Scene, path: [String], tried: inout Int,
        mismatches: inout [String]
    ) {
        guard depth > 0, mismatches.isEmpty else { return }
        for (action, actor) in Self.acts {
            for millisecond: Int64 in 0..<12 {
                var model = model
                var scene = scene
                let now = Instant.at(0, millisecond)
                let known = model.events.count
                var expected: NaiveOutcome?
                let step: Step
                if let action {
                    expected = model.perform(
                        action, by: actor, at: now.milliseconds, settings: scene.settings)
                    step = scene.perform(action, by: actor, at: now)
                } else {
                    model.tick(at: now.milliseconds)
                    step = scene.tick(at: now)
                }
                tried += 1
                let path = path + ["\(action.map { "\($0)" } ?? "tick") at \(millisecond)"]
                if let difference = step.difference(from: model, scene: scene, known: known, expected) {
                    mismatches.append("\(path): \(difference)")
                    return
                }
                descend(depth - 1, from: model, scene, path: path, tried: &tried, mismatches: &mismatches)
            }
        }
    }
}
