import RoomCore

/// A participant's columns, both ways. `role`: 0 moderator, 1 participant, 2 viewer.
enum ParticipantFields {
    static func number(of role: Role) -> Int64 {
        switch role {
        case .moderator: 0
        case .participant: 1
        case .viewer: 2
        }
    }

    static func participant(
        _ user: UserID, role: Int64, joinedAt milliseconds: Int64, of room: RoomID
    ) throws(StoreError) -> Participant {
        let found: Role
        switch role {
        case 0: found = .moderator
        case 1: found = .participant
        case 2: found = .viewer
        default: throw .corruptRoom(room, "the role of user \(user.text) is \(role)")
        }
        let joinedAt = Instant(milliseconds: milliseconds)
        guard joinedAt.milliseconds == milliseconds else {
            throw .corruptRoom(room, "user \(user.text) joined at \(milliseconds)")
        }
        return Participant(user: user, role: found, joinedAt: joinedAt)
    }
}
