package import RoomCore

/// What a worker answers to a tick: how its rooms stand once it was decided. Internal to Overtime.
///
/// It says of hundreds of rooms in one message what their events say one by one, so that who fired them need not hear
/// these events. On the wire the field is `idle`: it began as that of rooms with nothing due, and no other answer has it.
package struct TickAnswer: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        package let room: RoomID
        /// When to fire again; nil where no session runs.
        package let nextDueAt: Instant?
        /// The number of the room's last event; 0 for a room nobody knows.
        package let sequence: Int64

        package init(room: RoomID, nextDueAt: Instant?, sequence: Int64) {
            self.room = room
            self.nextDueAt = nextDueAt
            self.sequence = sequence
        }
    }

    /// The worker's clock, from which the scheduler learns how far its own is off.
    package let serverTime: Instant
    package let rooms: [Row]

    package init(serverTime: Instant, rooms: [Row]) {
        self.serverTime = serverTime
        self.rooms = rooms
    }

    package func encode() -> [UInt8] {
        JSONWriter.object(capacity: 64 + rooms.count * 112) { writer in
            writer.field("serverTime", serverTime)
            writer.field("idle", array: rooms) { writer, entry in
                writer.object { writer in
                    writer.field("room", entry.room)
                    writer.field("nextDueAt", entry.nextDueAt)
                    writer.field("sequence", entry.sequence)
                }
            }
        }
    }

    package static func decode(_ body: [UInt8]) -> TickAnswer? {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes),
            let serverTime = whole["serverTime"]?.instant, let values = whole["idle"]?.array
        else { return nil }
        var rooms: [Row] = []
        rooms.reserveCapacity(values.count)
        for value in values {
            guard let room = value["room"]?.string, let sequence = value["sequence"]?.integer,
                let due = value["nextDueAt"], due.isNull || due.instant != nil
            else { return nil }
            rooms.append(Row(room: RoomID(room), nextDueAt: due.instant, sequence: sequence))
        }
        return TickAnswer(serverTime: serverTime, rooms: rooms)
    }
}
