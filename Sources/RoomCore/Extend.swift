/// `extend`: judged by the clock and the stored end alone, never by whether a notice went out.
extension Change {
    mutating func extend(by asked: TimeSpan?, _ actor: Actor, _ connection: Participant?) -> Result<
        Outcome, Refusal
    > {
        requireSession().flatMap { session in
            let policy = session.definition.policy
            let extender: Extender
            switch Self.extender(actor, connection, policy: policy) {
            case .failure(let refusal): return .failure(refusal)
            case .success(let allowed): extender = allowed
            }
            return grant(asked, to: extender, in: session)
        }
    }

    /// Who may extend: a connected user, where the policy says so a moderator, or an operator.
    private static func extender(
        _ actor: Actor, _ connection: Participant?, policy: Policy
    ) -> Result<Extender, Refusal> {
        switch actor {
        case .operator(let name):
            return .success(.operator(name))
        case .nobody:
            return .failure(Refusal(.unauthorized, "an extend without a user is an operator's"))
        case .user:
            guard let connection else { return .failure(.notConnected(to: "extend the session")) }
            guard policy.extenders == .anyone || connection.role == .moderator else {
                return .failure(Refusal(.unauthorized, "only a moderator may extend this session"))
            }
            return .success(.user(connection.user))
        }
    }

    private mutating func grant(
        _ asked: TimeSpan?, to extender: Extender, in session: Session
    ) -> Result<Outcome, Refusal> {
        let policy = session.definition.policy
        guard case .running(var run) = session.phase else {
            guard policy.longestGrant(extensions: 0, total: session.definition.duration) != nil else {
                return .failure(.limitReached(policy, extensions: 0))
            }
            return .failure(
                Refusal(.windowNotOpen, "the session waits for its first moderator and has no end to extend"))
        }
        guard let most = policy.longestGrant(extensions: run.extensions, total: run.endsAt - run.startedAt)
        else {
            return .failure(.limitReached(policy, extensions: run.extensions))
        }
        guard policy.openWindow(at: now, end: run.endsAt) != nil else {
            let opensAt = policy.nextOpening(after: now, end: run.endsAt)
            guard let by = run.extendedBy else {
                return .failure(
                    Refusal(
                        .windowNotOpen, "the session can be extended once a window opens", opensAt: opensAt))
            }
            return .failure(
                Refusal(
                    .alreadyExtended, "the session was extended already: the next window has not opened yet",
                    opensAt: opensAt, extendedBy: by))
        }
        let bounds = policy.extension
        let granted = min(max(asked ?? bounds.default, bounds.min), most)
        let previousEnd = run.endsAt
        run.endsAt = previousEnd + granted
        run.extensions += 1
        run.announced = 0
        run.extendedBy = extender
        let extended = run
        updateSession { $0.phase = .running(extended) }
        emit(
            .sessionExtended(
                ExtensionNotice(
                    granted: granted, by: extender, previousEndsAt: previousEnd, endsAt: run.endsAt,
                    nextDueAt: policy.nextDue(after: now, end: run.endsAt), extensions: run.extensions)))
        return .success(.extended(by: granted, endsAt: run.endsAt, extensions: run.extensions))
    }
}

extension Refusal {
    static func limitReached(_ policy: Policy, extensions: Int64) -> Refusal {
        if let most = policy.maxExtensions, extensions >= most {
            let allowed = most == 0 ? "no extension" : most == 1 ? "one extension" : "\(most) extensions"
            return Refusal(.limitReached, "the room allows \(allowed) of a session")
        }
        return Refusal(.limitReached, "no extension fits into the longest session the room allows")
    }
}
