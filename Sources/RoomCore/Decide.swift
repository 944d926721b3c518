/// What the rules need to know of the configuration.
package struct RoomSettings: Hashable, Sendable {
    /// Whether a join to an unknown room opens it with the defaults.
    package let adhoc: Bool
    /// The duration of a room whose `open` names none.
    package let duration: TimeSpan

    package init(adhoc: Bool = false, duration: TimeSpan = .minutes(60)) {
        self.adhoc = adhoc
        self.duration = duration
    }
}

extension Room {
    /// Decides one command: the whole of contract section 2, as a pure function.
    ///
    /// The room is first brought up to `now`; refusals are results and keep what came due.
    ///
    /// - Parameters:
    ///   - participant: the acting user's connection to this room's live session; nil where there is none.
    ///   - now: the clock, as it reads.
    package func decide(
        _ command: Command, by actor: Actor, participant: Participant?, at now: Instant,
        settings: RoomSettings = RoomSettings()
    ) -> Decision {
        var change = Change(room: self, clock: now)
        change.advance()
        let connection = change.liveSession == nil ? nil : participant
        let outcome: Result<Outcome, Refusal>
        switch command.action {
        case .open(let request): outcome = change.open(request, settings: settings)
        case .join(let role): outcome = change.join(actor, asking: role, connection, settings: settings)
        case .leave: outcome = change.leave(actor, connection)
        case .extend(let span): outcome = change.extend(by: span, actor, connection)
        case .destroy: outcome = change.destroy(actor, connection)
        case .status: outcome = change.status()
        }
        let transition = change.finish()
        switch outcome {
        case .success(let done): return Decision(transition: transition, outcome: done)
        case .failure(let refusal): return Decision(transition: transition, outcome: .refused(refusal))
        }
    }

    /// Answers without deciding: a repeat, or a key that was used for another command. Brings the room up
    /// to `now` all the same, as every command does.
    package func refuse(_ refusal: Refusal, at now: Instant) -> Decision {
        Decision(transition: advanced(to: now), outcome: .refused(refusal))
    }
}

extension Change {
    /// Refuses where the room was never opened.
    func requireRoom() -> Result<Definition, Refusal> {
        guard let definition = room.definition else {
            return .failure(Refusal(.unknownRoom, "there is no such room: send open first"))
        }
        return .success(definition)
    }

    /// Refuses where the room is unknown or no session is waiting or running.
    func requireSession() -> Result<Session, Refusal> {
        requireRoom().flatMap { _ in
            guard let session = liveSession else {
                return .failure(Refusal(.noSession, "no session is running in this room"))
            }
            return .success(session)
        }
    }

    func status() -> Result<Outcome, Refusal> { requireRoom().map { _ in .done } }
}
