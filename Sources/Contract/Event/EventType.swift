package import RoomCore

/// The events' names on the wire, which are also their routing keys.
package enum EventType: String, Hashable, Sendable, CaseIterable {
    case roomOpened = "room.opened"
    case sessionStarted = "session.started"
    case participantJoined = "participant.joined"
    case participantLeft = "participant.left"
    case participantRoleChanged = "participant.role.changed"
    case windowOpened = "session.window.opened"
    case sessionExtended = "session.extended"
    case destroyAcknowledged = "session.destroy.acknowledged"
    case sessionEnded = "session.ended"

    package init(_ kind: Event.Kind) {
        self =
            switch kind {
            case .roomOpened: .roomOpened
            case .sessionStarted: .sessionStarted
            case .participantJoined: .participantJoined
            case .participantLeft: .participantLeft
            case .participantRoleChanged: .participantRoleChanged
            case .windowOpened: .windowOpened
            case .sessionExtended: .sessionExtended
            case .destroyAcknowledged: .destroyAcknowledged
            case .sessionEnded: .sessionEnded
            }
    }

    /// The types that change when a room is next due.
    package static let timing: [EventType] = [
        .sessionStarted, .windowOpened, .sessionExtended, .sessionEnded,
    ]
}
