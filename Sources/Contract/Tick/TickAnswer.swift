package import RoomCore

/// What a worker answers to a tick: of these rooms nothing was due. Rooms of which something was due are
/// answered by their events. Internal to Overtime.
package struct TickAnswer: Hashable, Sendable {
    package struct Idle: Hashable, Sendable {
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
    package let idle: [Idle]

    package init(serverTime: Instant, idle: [Idle]) {
        self.serverTime = serverTime
        self.idle = idle
    }

    package func encode() -> [UInt8] {
        JSONWriter.object(capacity: 64 + idle.count * 112) { writer in
            writer.field("serverTime", serverTime)
            writer.field("idle", array: idle) { writer, entry in
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
        var idle: [Idle] = []
        idle.reserveCapacity(values.count)
        for value in values {
            guard let room = value["room"]?.string, let sequence = value["sequence"]?.integer,
                let due = value["nextDueAt"], due.isNull || due.instant != nil
            else { return nil }
            idle.append(Idle(room: RoomID(room), nextDueAt: due.instant, sequence: sequence))
        }
        return TickAnswer(serverTime: serverTime, idle: idle)
    }
}
