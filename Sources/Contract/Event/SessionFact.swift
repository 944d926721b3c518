package import RoomCore

/// What the scheduler needs of a session event: when the room is next due, or that it no longer is.
package struct SessionFact: Hashable, Sendable {
    package enum Due: Hashable, Sendable {
        case at(Instant)
        case ended
    }

    package let room: RoomID
    /// Facts with a lower number than a known one are old.
    package let sequence: Int64
    package let due: Due

    package init(room: RoomID, sequence: Int64, due: Due) {
        self.room = room
        self.sequence = sequence
        self.due = due
    }

    /// Nil for an event of another type, and for anything that is no event of ours.
    package static func decode(_ body: [UInt8]) -> SessionFact? {
        guard case .success(let event) = StrictJSON.parse(body), let data = event["data"],
            let type = event["type"]?.string.flatMap(EventType.init(rawValue:)),
            EventType.timing.contains(type), let room = data["room"]?.string,
            let sequence = event["sequence"]?.string.flatMap(Int64.init), sequence > 0
        else { return nil }
        if type == .sessionEnded { return SessionFact(room: RoomID(room), sequence: sequence, due: .ended) }
        guard let nextDueAt = data["nextDueAt"]?.instant else { return nil }
        return SessionFact(room: RoomID(room), sequence: sequence, due: .at(nextDueAt))
    }
}

extension JSONValue {
    /// A string that is a time in the contract's form.
    package var instant: Instant? { string.flatMap(TimeText.instant) }
}
