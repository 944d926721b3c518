extension Overtime {
    /// What a user is in a room: a moderator may end the session; who may extend it is the room's policy.
    public enum Role: String, Hashable, Sendable, CaseIterable {
        case moderator, participant, viewer
    }
}
