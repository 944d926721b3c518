import Testing

@testable import RoomCore

@Suite("The rules against a naive model")
struct RulesAgainstModelTests {
    static let sequences = 100_000
    static let steps = 10

    @Test("Every random sequence of commands and times does what the model predicts, step by step")
    func agreesWithModel() async {
        let seed = TestSeed.value
        let lanes = 2
        let clock = ContinuousClock()
        let began = clock.now
        let parts = await withTaskGroup(of: Comparison.self) { group in
            for lane in 0..<lanes {
                group.addTask {
                    var comparison = Comparison(seed: seed)
                    for number in stride(from: lane, to: Self.sequences, by: lanes) {
                        comparison.run(sequence: number, steps: Self.steps)
                        if comparison.mismatch != nil { break }
                    }
                    return comparison
                }
            }
            return await group.reduce(into: [Comparison]()) { $0.append($1) }
        }
        for part in parts {
            if let mismatch = part.mismatch { Issue.record("OVERTIME_TEST_SEED=\(seed): \(mismatch)") }
        }
        var total = Coverage()
        for part in parts { total.add(part.coverage) }
        print("model: seed \(seed), \(Self.sequences) sequences, \(began.duration(to: clock.now))\n\(total)")
        for seen in Coverage.Seen.allCases where parts.allSatisfy({ $0.mismatch == nil }) {
            #expect(
                total[seen] >= seen.required, "\(seen) was reached only \(total[seen]) times, seed \(seed)")
        }
    }
}

/// Runs sequences through the rules and the model and stops at the first difference.
struct Comparison {
    let seed: UInt64
    var coverage = Coverage()
    var mismatch: String?

    init(seed: UInt64) { self.seed = seed }

    mutating func run(sequence: Int, steps: Int) {
        var source = Dice(seed: seed &+ UInt64(sequence) &* 0xD134_2543_DE82_EF95)
        var random = RandomCommands(dice: Dice(seed: source.roll()))
        var model = NaiveModel(id: "demo")
        var scene = Scene(settings: random.settings())
        var trace: [RandomStep] = []
        var clock = RandomCommands.beginning
        for number in 0..<steps {
            let step = number == 0 ? random.first() : random.next(after: model, clock: clock)
            clock = step.clock
            trace.append(step)
            let known = model.events.count
            var expected: NaiveOutcome?
            if let action = step.action {
                expected = model.perform(action, by: step.actor, at: clock, settings: scene.settings)
            } else {
                model.tick(at: clock)
            }
            let now = Instant(milliseconds: clock)
            let actual = step.action.map { scene.perform($0, by: step.actor, at: now) } ?? scene.tick(at: now)
            if let difference = actual.difference(from: model, scene: scene, known: known, expected) {
                mismatch =
                    "sequence \(sequence), step \(number): \(difference)\n\(scene.settings)\n"
                    + trace.map { "  \($0)" }.joined(separator: "\n")
                return
            }
            coverage.note(actual, clock: now)
        }
    }
}
