/// `open`: defines the room, and opens it again after an end.
extension Change {
    mutating func open(_ request: OpenRequest, settings: RoomSettings) -> Result<Outcome, Refusal> {
        let duration = request.duration ?? settings.duration
        switch Policy.resolve(request.policy ?? PolicyRequest(), duration: duration) {
        case .failure(let refusal):
            return .failure(refusal)
        case .success(let policy):
            open(Definition(duration: duration, moderators: request.moderators, policy: policy))
            return .success(.done)
        }
    }

    /// During a session only the next one's definition changes; that does not count as opening again.
    /// An `open` equal to the definition set last changes nothing, except after an end.
    mutating func open(_ definition: Definition) {
        let isDuringSession = liveSession != nil
        guard room.definition != definition || !(isDuringSession || room.isOpen) else { return }
        define(definition)
        if isDuringSession {
            updateSession { _ in }
        } else {
            openRoom()
        }
        emit(.roomOpened(definition))
        guard !isDuringSession, definition.policy.clock == .open else { return }
        makeSession(definition: definition)
        startSession()
        advance()
    }
}
