import RoomCore

/// What the commands do, in the order of the contract's table of refusals.
extension NaiveModel {
    mutating func tick(at clock: Int64) { bringUpToDate(to: clock) }

    mutating func perform(
        _ action: Command.Action, by actor: Actor, at clock: Int64, settings: RoomSettings
    ) -> NaiveOutcome {
        bringUpToDate(to: clock)
        switch action {
        case .open(let request): return open(request, clock: clock, settings: settings)
        case .join(let role): return join(actor, role: role?.rawValue, clock: clock, settings: settings)
        case .leave: return leave(actor)
        case .extend(let wish): return extend(actor, wish: wish?.milliseconds)
        case .destroy: return destroy(actor)
        case .status: return definition == nil ? refuse("unknown_room") : .done
        }
    }

    private func refuse(_ reason: String, opensAt: Int64? = nil, extendedBy: Extender? = nil) -> NaiveOutcome
    {
        .refused(reason, opensAt: opensAt, extendedBy: extendedBy)
    }

    /// A `join` or `leave` without a user, which the decoder refuses before the rules see it.
    private var neverDecoded: NaiveOutcome { refuse("invalid_command") }

    private var isLive: Bool { session != nil && session?.over == nil }

    private mutating func open(_ request: OpenRequest, clock: Int64, settings: RoomSettings) -> NaiveOutcome {
        guard
            let new = NaiveDefinition.resolve(request, usualDuration: settings.duration.milliseconds)
        else { return refuse("invalid_policy") }
        if isLive {
            if new != definition { define(new) }
            return .done
        }
        if new == definition && !isClosed { return .done }
        if new.clock == "open" { now = clock }
        define(new)
        if new.clock == "open" {
            makeSession(of: new)
            startClock()
            announce()
        }
        return .done
    }

    private mutating func join(
        _ actor: Actor, role asked: String?, clock: Int64, settings: RoomSettings
    ) -> NaiveOutcome {
        guard case .user(let id) = actor else { return neverDecoded }
        let user = id.text
        if definition == nil && settings.adhoc {
            let usual = settings.duration.milliseconds
            guard let new = NaiveDefinition.resolve(OpenRequest(), usualDuration: usual) else {
                return refuse("invalid_policy")
            }
            define(new)
        }
        guard let definition else { return refuse("unknown_room") }
        if let present = session?.people[user], isLive {
            return changeRole(of: user, from: present, asked: asked)
        }
        var mayStart = session?.startedAt == nil
        if !isLive {
            if isClosed && definition.reopen == "command" { return refuse("session_over") }
            now = clock
            makeSession(of: definition)
            mayStart = true
        }
        guard let rules = session?.rules else { return refuse("no_session") }
        let role = rules.role(of: user, asking: asked ?? "participant")
        session?.people[user] = (role, now)
        if mayStart && (rules.clock != "first-moderator" || role == "moderator") { startClock() }
        connect(user)
        emit(
            .participantJoined(
                user: id, role: Role(rawValue: role) ?? .viewer, connected: Int64(session?.people.count ?? 0))
        )
        announce()
        return .joined(role)
    }

    private mutating func changeRole(
        of user: String, from present: (role: String, joinedAt: Int64), asked: String?
    ) -> NaiveOutcome {
        guard let asked, let session else { return .joined(present.role) }
        let role = session.rules.role(of: user, asking: asked)
        if role == present.role { return .joined(role) }
        self.session?.people[user] = (role, present.joinedAt)
        if session.startedAt == nil && role == "moderator" { startClock() }
        connect(user)
        emit(
            .participantRoleChanged(
                user: UserID(user), role: Role(rawValue: role) ?? .viewer,
                connected: Int64(session.people.count)))
        announce()
        return .joined(role)
    }

    private mutating func connect(_ user: String) {
        guard let person = session?.people[user] else { return }
        row = .connected(
            Participant(
                user: UserID(user), role: Role(rawValue: person.role) ?? .viewer,
                joinedAt: Instant(milliseconds: person.joinedAt)))
    }

    private mutating func leave(_ actor: Actor) -> NaiveOutcome {
        guard case .user(let id) = actor else { return neverDecoded }
        if definition == nil { return refuse("unknown_room") }
        if !isLive { return refuse("no_session") }
        guard let person = session?.people.removeValue(forKey: id.text) else {
            return refuse("not_connected")
        }
        row = .left(id)
        emit(
            .participantLeft(
                user: id, role: Role(rawValue: person.role) ?? .viewer,
                connected: Int64(session?.people.count ?? 0)))
        return .done
    }

    /// The refusals that `extend` and `destroy` share; nil where none applies.
    private func bar(_ actor: Actor, moderatorsOnly: (NaiveSession) -> Bool) -> NaiveOutcome? {
        if definition == nil { return refuse("unknown_room") }
        guard let session, session.over == nil else { return refuse("no_session") }
        switch actor {
        case .operator: return nil
        case .nobody: return refuse("unauthorized")
        case .user(let id):
            guard let person = session.people[id.text] else { return refuse("not_connected") }
            let isBarred = moderatorsOnly(session) && person.role != "moderator"
            return isBarred ? refuse("unauthorized") : nil
        }
    }

    private mutating func extend(_ actor: Actor, wish: Int64?) -> NaiveOutcome {
        if let barred = bar(actor, moderatorsOnly: { $0.rules.extenders == "moderators" }) { return barred }
        guard let session else { return refuse("no_session") }
        let rules = session.rules
        var clamped = wish ?? rules.usual
        if clamped < rules.least { clamped = rules.least }
        if clamped > rules.most { clamped = rules.most }
        guard let granted = session.grant(clamped) else { return refuse("limit_reached") }
        guard session.window(at: now) != nil, let oldEnd = session.endsAt else {
            let opensAt = session.opening(after: now)
            return session.grants.isEmpty
                ? refuse("window_not_open", opensAt: opensAt)
                : refuse("already_extended", opensAt: opensAt, extendedBy: session.grants.last)
        }
        let extender: Extender
        switch actor {
        case .user(let id): extender = .user(id)
        case .operator(let name): extender = .operator(name)
        case .nobody: return refuse("unauthorized")
        }
        let newEnd = oldEnd + granted
        self.session?.endsAt = newEnd
        self.session?.grants.append(extender)
        let count = Int64(session.grants.count) + 1
        emit(
            .sessionExtended(
                ExtensionNotice(
                    granted: TimeSpan(milliseconds: granted), by: extender,
                    previousEndsAt: Instant(milliseconds: oldEnd), endsAt: Instant(milliseconds: newEnd),
                    nextDueAt: Instant(milliseconds: self.session?.opening(after: now) ?? newEnd),
                    extensions: count)))
        return .extended(by: granted, endsAt: newEnd, extensions: count)
    }

    private mutating func destroy(_ actor: Actor) -> NaiveOutcome {
        if let barred = bar(actor, moderatorsOnly: { _ in true }) { return barred }
        var destroyer: String?
        if case .user(let id) = actor {
            destroyer = id.text
            emit(.destroyAcknowledged(by: id))
        }
        end("destroyed", by: destroyer, lateBy: 0)
        return .done
    }
}
