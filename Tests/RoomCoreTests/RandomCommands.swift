import RoomCore

/// One step of a random sequence; without an action it is a tick.
struct RandomStep {
    var action: Command.Action?
    var actor: Actor
    var clock: Int64
}

/// Draws policies, commands and times that lead to deep states: mostly from the boundaries of the session
/// that the model knows, a millisecond beside them, and out of order.
struct RandomCommands {
    static let users = ["ann", "bob", "cid", "dee"]
    static let beginning: Int64 = 1_800_000_000_000
    private static let minute: Int64 = 60_000

    var dice: Dice

    mutating func settings() -> RoomSettings {
        RoomSettings(adhoc: dice.chance(20), duration: .minutes(dice.pick([60, 60, 8])))
    }

    // MARK: Steps

    mutating func first() -> RandomStep {
        let action: Command.Action = dice.chance(85) ? .open(openRequest(like: nil)) : anyAction(.idle)
        return RandomStep(action: action, actor: actor(for: action, in: nil), clock: Self.beginning)
    }

    mutating func next(after model: NaiveModel, clock: Int64) -> RandomStep {
        let state = State(model)
        let time = instant(state, model: model, clock: clock)
        if dice.chance(state == .running ? 15 : 6) {
            return RandomStep(action: nil, actor: .nobody, clock: time)
        }
        var action = anyAction(state)
        if case .open = action { action = .open(openRequest(like: model.definition)) }
        return RandomStep(action: action, actor: actor(for: action, in: model.session), clock: time)
    }

    private enum State {
        case idle, waiting, running

        init(_ model: NaiveModel) {
            guard let session = model.session, session.over == nil else {
                self = .idle
                return
            }
            self = session.startedAt == nil ? .waiting : .running
        }
    }

    private mutating func anyAction(_ state: State) -> Command.Action {
        let hundred = dice.below(100)
        // The upper ends of: join, extend, leave, destroy, status; the rest is open.
        let shares =
            switch state {
            case .idle: [48, 54, 58, 63, 66]
            case .waiting: [50, 63, 72, 82, 86]
            case .running: [22, 74, 81, 86, 89]
            }
        if hundred < shares[0] { return .join(role: dice.chance(35) ? nil : dice.pick(Role.allCases)) }
        if hundred < shares[1] { return .extend(by: dice.chance(50) ? nil : wish()) }
        if hundred < shares[2] { return .leave }
        if hundred < shares[3] { return .destroy }
        if hundred < shares[4] { return .status }
        return .open(OpenRequest())
    }

    private mutating func actor(for action: Command.Action, in session: NaiveSession?) -> Actor {
        switch action {
        case .open, .status: return .nobody
        case .extend, .destroy:
            if dice.chance(session?.startedAt == nil ? 40 : 14) {
                return .operator(dice.pick(["backend", "billing"]))
            }
            if dice.chance(4) { return .nobody }
        case .join, .leave: break
        }
        var isJoin = false
        if case .join = action { isJoin = true }
        if !isJoin, let session, !session.people.isEmpty, dice.chance(85) {
            let present = Self.users.filter { session.people[$0] != nil }
            return .user(UserID(dice.pick(present)))
        }
        return .user(UserID(dice.pick(Self.users)))
    }

    private mutating func wish() -> TimeSpan {
        .init(
            milliseconds: dice.pick([1, Self.minute, 10, 15, 30, 31, 600].map { $0 * Self.minute / 2 }) + 1)
    }

    // MARK: Times

    private mutating func instant(_ state: State, model: NaiveModel, clock: Int64) -> Int64 {
        let beside = dice.pick([-1, 0, 0, 0, 1] as [Int64])
        let hundred = dice.below(100)
        guard state == .running, let session = model.session, let endsAt = session.endsAt else {
            if hundred < 40 { return clock }
            if hundred < 55 { return clock - dice.within(1...90 * Self.minute) }
            return clock + dice.within(0...20 * Self.minute)
        }
        let due = model.dueAt ?? endsAt
        if hundred < 44 { return due + beside }
        if hundred < 58 {
            let later = session.rules.intervals(before: endsAt).map { $0.from }.filter { $0 > model.now }
            return dice.pick(later + [endsAt]) + beside
        }
        if hundred < 70 { return clock }
        if hundred < 83 { return model.now + dice.within(0...max(0, due - model.now)) }
        if hundred < 88 { return endsAt - 1 }
        if hundred < 91 { return endsAt + dice.within(0...100 * Self.minute) }
        return clock - dice.pick([1, 1_000, dice.within(1...90 * Self.minute)])
    }

    // MARK: Definitions

    private mutating func openRequest(like definition: NaiveDefinition?) -> OpenRequest {
        if dice.chance(12) { return OpenRequest() }
        if let value = definition?.asDefinition, dice.chance(25) { return OpenRequest(repeating: value) }
        var request = OpenRequest()
        if dice.chance(75) {
            request.duration = TimeSpan(
                milliseconds: dice.pick([60, 20, 12, 10, 7, 5, 3, 1].map { $0 * Self.minute }))
        }
        if dice.chance(20) {
            request.moderators = Self.users.filter { _ in dice.chance(30) }.map { UserID($0) }
        }
        if dice.chance(85) { request.policy = policy(duration: request.duration) }
        return request
    }

    private mutating func policy(duration: TimeSpan?) -> PolicyRequest {
        var policy = PolicyRequest()
        if dice.chance(65) { policy.windows = windows().map { TimeSpan(milliseconds: $0) } }
        if dice.chance(45) {
            policy.extension = extensionRequest(longest: policy.windows?.first?.milliseconds)
        }
        if dice.chance(25) { policy.extenders = .moderators }
        if dice.chance(30) { policy.maxExtensions = dice.within(0...3) }
        if dice.chance(30) {
            let total = (duration?.milliseconds ?? 60 * Self.minute) + dice.within(-2...45) * Self.minute
            policy.maxTotal = TimeSpan(milliseconds: max(1, total))
        }
        if dice.chance(50) { policy.clock = dice.pick(SessionClock.allCases) }
        if dice.chance(50) { policy.reopen = .join }
        return policy
    }

    private mutating func windows() -> [Int64] {
        let count = dice.pick([1, 1, 2, 2, 3, 4, 5, 8, 8])
        var list: [Int64] = []
        var length = dice.pick([1, 2_500, Self.minute, 2 * Self.minute])
        for _ in 0..<count {
            list.append(length)
            length += dice.pick([1, 30_000, Self.minute, 3 * Self.minute])
        }
        list.reverse()
        switch dice.below(40) {
        case 0: return []
        case 1: return list + [list[count - 1]]
        case 2: return list.reversed()
        case 3: return (1...9).reversed().map { $0 * Self.minute }
        default: return list
        }
    }

    private mutating func extensionRequest(longest: Int64?) -> ExtensionRequest {
        let longest = longest ?? 10 * Self.minute
        var request = ExtensionRequest()
        if dice.chance(80) {
            let above = dice.pick([0, 0, 1, Self.minute, 7 * Self.minute, dice.chance(15) ? -1 : 0])
            request.min = TimeSpan(milliseconds: max(1, longest + above))
        }
        let least = request.min?.milliseconds ?? max(longest, 10 * Self.minute)
        if dice.chance(60) {
            request.max = TimeSpan(
                milliseconds: max(1, least + dice.pick([0, 1, 20 * Self.minute, dice.chance(15) ? -1 : 1])))
        }
        if dice.chance(40) {
            request.default = TimeSpan(milliseconds: least + dice.pick([0, 1, 2, dice.chance(20) ? -1 : 0]))
        }
        return request
    }
}

extension OpenRequest {
    /// A definition written out in full.
    init(repeating value: Definition) {
        let policy = value.policy
        self.init(
            duration: value.duration, moderators: value.moderators,
            policy: PolicyRequest(
                windows: policy.windows,
                extension: ExtensionRequest(
                    min: policy.extension.min, max: policy.extension.max, default: policy.extension.default),
                extenders: policy.extenders, maxExtensions: policy.maxExtensions, maxTotal: policy.maxTotal,
                clock: policy.clock, reopen: policy.reopen))
    }
}
