import Testing

@testable import RoomCore

@Suite("The rules against a naive model")
struct RulesAgainstModelTests {
    static let sequences = 100_000
    static let steps = 12

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
            if let difference = difference(
                actual, scene: scene, model: model, known: known, expected: expected)
            {
                mismatch =
                    "sequence \(sequence), step \(number): \(difference)\n\(scene.settings)\n"
                    + trace.map { "  \($0)" }.joined(separator: "\n")
                return
            }
            coverage.note(actual, clock: now)
        }
    }

    private func difference(
        _ actual: Step, scene: Scene, model: NaiveModel, known: Int, expected: NaiveOutcome?
    ) -> String? {
        let transition = actual.transition
        let outcome: NaiveOutcome? = actual.outcome.map { NaiveOutcome($0) }
        if outcome != expected { return pair("outcome", outcome as Any, expected as Any) }
        let events = Array(model.events[known...])
        if transition.events != events { return pair("events", transition.events, events) }
        let judgedAt = actual.judgedAt.milliseconds
        if judgedAt != model.now { return pair("judgedAt", judgedAt, model.now) }
        if transition.participant != model.row {
            return pair("row", transition.participant as Any, model.row as Any)
        }
        let sequence = Int64(model.events.count)
        if transition.room.sequence != sequence {
            return pair("sequence", transition.room.sequence, sequence)
        }
        if transition.isChange == events.isEmpty {
            return pair("isChange", transition.isChange, events.count)
        }
        if !transition.isChange, transition.room != actual.before {
            return pair("unchanged room", transition.room, actual.before)
        }
        let dueAt = transition.room.dueAt?.milliseconds
        if dueAt != model.dueAt { return pair("dueAt", dueAt as Any, model.dueAt as Any) }
        let snapshot = scene.snapshot(at: actual.judgedAt)
        if snapshot != model.snapshot { return pair("snapshot", snapshot as Any, model.snapshot as Any) }
        let people = model.session?.people.count ?? 0
        if scene.people.count != people { return pair("people", scene.people.count, people) }
        return nil
    }

    private func pair(_ name: String, _ rules: Any, _ model: Any) -> String {
        "\(name)\n  rules: \(rules)\n  model: \(model)"
    }
}

extension NaiveOutcome {
    init(_ outcome: Outcome) {
        switch outcome {
        case .done: self = .done
        case .joined(let role): self = .joined(role.rawValue)
        case .extended(let by, let endsAt, let extensions):
            self = .extended(by: by.milliseconds, endsAt: endsAt.milliseconds, extensions: extensions)
        case .refused(let refusal):
            self = .refused(
                refusal.reason.rawValue, opensAt: refusal.opensAt?.milliseconds,
                extendedBy: refusal.extendedBy)
        }
    }
}
