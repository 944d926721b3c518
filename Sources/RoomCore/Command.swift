/// A command as decoded: what is compared when the same key comes again. Equality is that of the decoded
/// arguments, so `10` and `"10m"` are the same and an omitted field differs from its default.
package struct Command: Hashable, Sendable {
    package let room: RoomID
    /// Nil where the command named nobody; never set on `open` and `status`, where it does not count.
    package let user: UserID?
    package let id: CommandID?
    package let action: Action

    package init(room: RoomID, user: UserID? = nil, id: CommandID? = nil, action: Action) {
        self.room = room
        self.user = user
        self.id = id
        self.action = action
    }

    package enum Action: Hashable, Sendable {
        case open(OpenRequest)
        case join(role: Role?)
        case leave
        case extend(by: TimeSpan?)
        case destroy
        case status

        package var name: CommandKind {
            switch self {
            case .open: .open
            case .join: .join
            case .leave: .leave
            case .extend: .extend
            case .destroy: .destroy
            case .status: .status
            }
        }
    }
}

/// The commands' names on the wire.
package enum CommandKind: String, Hashable, Sendable, CaseIterable {
    case open, join, leave, extend, destroy, status
}

/// The arguments of `open` as they came; what is omitted takes its default.
package struct OpenRequest: Hashable, Sendable {
    package var duration: TimeSpan?
    package var moderators: [UserID]?
    package var policy: PolicyRequest?

    package init(duration: TimeSpan? = nil, moderators: [UserID]? = nil, policy: PolicyRequest? = nil) {
        self.duration = duration
        self.moderators = moderators
        self.policy = policy
    }
}

/// Who acts.
package enum Actor: Hashable, Sendable {
    case user(UserID)
    /// A backend that `amqp.operators` names, known by the `user_id` that the broker validated.
    case `operator`(String)
    /// Neither a user nor an operator.
    case nobody
}
