/// `join` and `leave`: who is connected, and the start of a session.
extension Change {
    mutating func join(
        _ actor: Actor, asking role: Role?, _ connection: Participant?, settings: RoomSettings
    ) -> Result<Outcome, Refusal> {
        guard case .user(let user) = actor else {
            return .failure(Refusal(.notConnected, "a join needs a user"))
        }
        if room.definition == nil, settings.adhoc {
            let request = OpenRequest()
            if case .failure(let refusal) = open(request, settings: settings) { return .failure(refusal) }
        }
        switch requireRoom() {
        case .failure(let refusal):
            return .failure(refusal)
        case .success(let definition):
            if let session = liveSession, let connection {
                return .success(.joined(role: changeRole(of: connection, to: role, in: session)))
            }
            guard liveSession != nil || room.isOpen || definition.policy.reopen == .join else {
                return .failure(
                    Refusal(
                        .sessionOver,
                        "the session is over: the room must be opened again before anybody joins"))
            }
            return .success(.joined(role: connect(user, asking: role, definition: definition)))
        }
    }

    mutating func leave(_ actor: Actor, _ connection: Participant?) -> Result<Outcome, Refusal> {
        requireSession().flatMap { session in
            guard let connection else { return .failure(.notConnected(to: "leave")) }
            updateSession { $0.connected -= 1 }
            participant = .left(connection.user)
            emit(
                .participantLeft(
                    user: connection.user, role: connection.role, connected: session.connected - 1))
            return .success(.done)
        }
    }

    /// Joins somebody who is not connected, into the live session or a new one.
    private mutating func connect(_ user: UserID, asking asked: Role?, definition: Definition) -> Role {
        if liveSession == nil { makeSession(definition: definition) }
        let session = liveSession
        let role = (session?.definition ?? definition).role(of: user, asking: asked)
        startIfDue(role)
        updateSession { $0.connected += 1 }
        participant = .connected(Participant(user: user, role: role, joinedAt: now))
        emit(.participantJoined(user: user, role: role, connected: (session?.connected ?? 0) + 1))
        advance()
        return role
    }

    /// Joining again while connected changes nothing but the role, and without one not even that.
    private mutating func changeRole(of connection: Participant, to asked: Role?, in session: Session) -> Role
    {
        guard let asked else { return connection.role }
        let role = session.definition.role(of: connection.user, asking: asked)
        guard role != connection.role else { return role }
        startIfDue(role)
        updateSession { _ in }
        participant = .connected(
            Participant(user: connection.user, role: role, joinedAt: connection.joinedAt))
        emit(.participantRoleChanged(user: connection.user, role: role, connected: session.connected))
        advance()
        return role
    }

    /// Starts a waiting session, unless its clock waits for a moderator and this is none.
    private mutating func startIfDue(_ role: Role) {
        guard let session = liveSession, case .waiting = session.phase else { return }
        if session.definition.policy.clock != .firstModerator || role == .moderator { startSession() }
    }
}

extension Definition {
    /// The role somebody gets. A list of moderators decides: who is on it is a moderator whatever was
    /// asked for, who is not gets at most `participant`.
    func role(of user: UserID, asking asked: Role?) -> Role {
        guard let moderators else { return asked ?? .participant }
        if moderators.contains(user) { return .moderator }
        return asked == .viewer ? .viewer : .participant
    }
}

extension Refusal {
    static func notConnected(to act: String) -> Refusal {
        Refusal(.notConnected, "only a user who is in the room may \(act)")
    }
}
