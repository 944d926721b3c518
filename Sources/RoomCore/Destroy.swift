/// `destroy`: ends the session for everybody; moderators and operators only. A participant who tries gets
/// 5116, and nothing changes (seed text, Error Codes).
extension Change {
    mutating func destroy(_ actor: Actor, _ connection: Participant?) -> Result<Outcome, Refusal> {
        requireSession().flatMap { _ in
            switch actor {
            case .operator:
                endSession(cause: .destroyed, by: nil)
            case .nobody:
                return .failure(Refusal(.unauthorized, "a destroy without a user is an operator's"))
            case .user:
                guard let connection else { return .failure(.notConnected(to: "destroy the session")) }
                guard connection.role == .moderator else {
                    return .failure(Refusal(.unauthorized, "only a moderator may destroy the session"))
                }
                emit(.destroyAcknowledged(by: connection.user))
                endSession(cause: .destroyed, by: connection.user)
            }
            return .success(.done)
        }
    }
}
