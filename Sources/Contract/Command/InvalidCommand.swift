package import RoomCore

/// What is no valid command: for the dead letter's headers and for the answer `invalid_command`.
package struct InvalidCommand: Error, Hashable, Sendable {
    /// The short word of the header `x-overtime-reason`.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        case tooLarge = "too_large"
        case notJSON = "not_json"
        case notAnObject = "not_an_object"
        case invalidCommand = "invalid_command"
    }

    package let reason: Reason
    /// A sentence that names the field and the remedy; bounded, without control characters.
    package let detail: String
    /// The key, the command and the room, each only where it is valid by itself.
    package let id: CommandID?
    package let command: CommandKind?
    package let room: RoomID?

    package var reasonWord: String { reason.rawValue }

    package init(
        _ reason: Reason, _ detail: String, id: CommandID? = nil, command: CommandKind? = nil,
        room: RoomID? = nil
    ) {
        self.reason = reason
        self.detail = PrintableText.bounded(detail)
        self.id = id
        self.command = command
        self.room = room
    }
}
