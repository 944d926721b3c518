package import RoomCore

/// What a scheduler tells a worker: these rooms have something to say. Internal to Overtime.
///
/// A tick carries no time and no fact. The worker looks for itself, so one too many, too early or twice does
/// no harm.
package struct Tick: Hashable, Sendable {
    package static let maximumRooms = 500
    package static let maximumBytes = 65_536

    /// The id of the scheduler that fired, by which others keep back.
    package let scheduler: String
    package let rooms: [RoomID]

    package init(scheduler: String, rooms: [RoomID]) {
        self.scheduler = scheduler
        self.rooms = rooms
    }

    /// As many ticks as the bounds ask for: 500 rooms each, and 64 KiB once encoded.
    package static func split(scheduler: String, rooms: [RoomID]) -> [Tick] {
        var ticks: [Tick] = []
        var part: [RoomID] = []
        let empty = Tick(scheduler: scheduler, rooms: []).encode().count
        var size = empty
        for room in rooms {
            // One more for the comma.
            let needed = JSONWriter.size(ofString: room.text) + 1
            if part.count == maximumRooms || (size + needed > maximumBytes && !part.isEmpty) {
                ticks.append(Tick(scheduler: scheduler, rooms: part))
                part = []
                size = empty
            }
            part.append(room)
            size += needed
        }
        if !part.isEmpty { ticks.append(Tick(scheduler: scheduler, rooms: part)) }
        return ticks
    }

    package func encode() -> [UInt8] {
        JSONWriter.object(capacity: 64 + rooms.count * 40) { writer in
            writer.field("scheduler", scheduler)
            writer.field("rooms", array: rooms) { $0.string($1.text) }
        }
    }

    /// Nil for anything that no scheduler sends: anybody may publish to the exchange of ticks.
    package static func decode(_ body: [UInt8]) -> Tick? {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: maximumBytes),
            let scheduler = whole["scheduler"]?.string, let values = whole["rooms"]?.array,
            values.count <= maximumRooms
        else { return nil }
        var rooms: [RoomID] = []
        rooms.reserveCapacity(values.count)
        for value in values {
            guard let text = value.string, let room: RoomID = try? NameRule.name(text, called: "room")
            else { return nil }
            rooms.append(room)
        }
        return Tick(scheduler: scheduler, rooms: rooms)
    }
}
