extension Overtime {
    /// What a user is in a room: a moderator may end the session; who may extend it is the room's policy.
    public enum Role: String, Hashable, Sendable, CaseIterable {
        /// May end the session.
        case moderator
        /// May extend it, as anyone may where the policy does not say otherwise.
        case participant
        /// May do as much as a participant; the difference is the program's.
        case viewer
    }
}
