import RoomCore

// Words that make the tables read like the contract.

extension Instant {
    /// Minutes (and milliseconds) after the tests' zero, at which most sessions here start.
    static func at(_ minutes: Int64, _ milliseconds: Int64 = 0) -> Instant {
        Instant(milliseconds: 1_800_000_000_000 + minutes * 60_000 + milliseconds)
    }
}

extension TimeSpan {
    static func ms(_ count: Int64) -> TimeSpan { TimeSpan(milliseconds: count) }
}

extension Actor {
    static let backend = Actor.operator("backend")
}

extension Scene {
    /// A room opened at zero; nobody has joined.
    static func opened(
        minutes: Int64 = 60, moderators: [UserID]? = nil, _ policy: PolicyRequest = PolicyRequest()
    ) -> Scene {
        var scene = Scene()
        scene.open(minutes: minutes, moderators: moderators, policy, at: .at(0))
        return scene
    }

    /// A room whose session started at zero with ann, a moderator, and bob, a participant.
    static func running(minutes: Int64 = 60, _ policy: PolicyRequest = PolicyRequest()) -> Scene {
        var scene = Scene.opened(minutes: minutes, policy)
        scene.join("ann", .moderator, at: .at(0))
        scene.join("bob", .participant, at: .at(0))
        return scene
    }

    @discardableResult
    mutating func open(
        minutes: Int64? = 60, moderators: [UserID]? = nil, _ policy: PolicyRequest = PolicyRequest(),
        at now: Instant
    ) -> Step {
        let request = OpenRequest(
            duration: minutes.map { TimeSpan.minutes($0) }, moderators: moderators, policy: policy)
        return perform(.open(request), at: now)
    }

    @discardableResult
    mutating func join(_ user: UserID, _ role: Role? = nil, at now: Instant) -> Step {
        perform(.join(role: role), by: .user(user), at: now)
    }

    @discardableResult
    mutating func leave(_ user: UserID, at now: Instant) -> Step {
        perform(.leave, by: .user(user), at: now)
    }

    @discardableResult
    mutating func extend(_ user: UserID, by span: TimeSpan? = nil, at now: Instant) -> Step {
        perform(.extend(by: span), by: .user(user), at: now)
    }

    @discardableResult
    mutating func destroy(_ user: UserID, at now: Instant) -> Step {
        perform(.destroy, by: .user(user), at: now)
    }

    @discardableResult
    mutating func status(at now: Instant) -> Step { perform(.status, at: now) }
}

extension Step {
    /// The events in short: `window 1`, `extended 10m`, `ended elapsed`.
    var log: [String] { transition.events.map { $0.kind.brief } }

    var window: WindowNotice? {
        for case .windowOpened(let notice) in kinds { return notice }
        return nil
    }

    var ended: EndNotice? {
        for case .sessionEnded(let notice) in kinds { return notice }
        return nil
    }

    var extended: ExtensionNotice? {
        for case .sessionExtended(let notice) in kinds { return notice }
        return nil
    }

    /// The outcome in short: `done`, `moderator`, `+10m`, a refusal's reason, `tick`.
    var answer: String {
        switch outcome {
        case nil: "tick"
        case .done: "done"
        case .joined(let role): role.rawValue
        case .extended(let span, _, _): "+\(span.brief)"
        case .refused(let refusal): refusal.reason.rawValue
        }
    }
}

extension TimeSpan {
    var brief: String { milliseconds % 60_000 == 0 ? "\(milliseconds / 60_000)m" : "\(milliseconds)ms" }
}

extension Event.Kind {
    var brief: String {
        switch self {
        case .roomOpened: "opened"
        case .sessionStarted: "started"
        case .participantJoined(let user, _, _): "joined \(user)"
        case .participantLeft(let user, _, _): "left \(user)"
        case .participantRoleChanged(let user, let role, _): "\(user) is \(role.rawValue)"
        case .windowOpened(let notice): "window \(notice.window)"
        case .sessionExtended(let notice): "extended \(notice.granted.brief)"
        case .destroyAcknowledged(let user): "acknowledged \(user)"
        case .sessionEnded(let notice): "ended \(notice.cause.rawValue)"
        }
    }
}
