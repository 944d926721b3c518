import RoomCore

extension Step {
    /// The first thing in which the rules and the model disagree about this step; nil if they agree.
    ///
    /// - Parameter known: how many events the model knew before it.
    func difference(
        from model: NaiveModel, scene: Scene, known: Int, _ expected: NaiveOutcome?
    ) -> String? {
        let outcome: NaiveOutcome? = self.outcome.map { NaiveOutcome($0) }
        if outcome != expected { return pair("outcome", outcome as Any, expected as Any) }
        let events = Array(model.events[known...])
        if transition.events != events { return pair("events", transition.events, events) }
        if judgedAt.milliseconds != model.now { return pair("judgedAt", judgedAt.milliseconds, model.now) }
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
        if !transition.isChange, transition.room != before {
            return pair("unchanged room", transition.room, before)
        }
        let dueAt = transition.room.dueAt?.milliseconds
        if dueAt != model.dueAt { return pair("dueAt", dueAt as Any, model.dueAt as Any) }
        let snapshot = scene.snapshot(at: judgedAt)
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
