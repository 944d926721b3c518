import RoomCore

/// Rooms that the store fails on while it works for others, or that somebody else changes each time they are decided.
///
/// Their commands wait here in order, unacknowledged, so that waiting costs no delivery of the broker's limit. One room at a
/// time is tried again, after 1 s, doubling to 10 s; with the first that succeeds the next one follows at once.
/// Bounded by the prefetch, as the intake is.
struct Aside {
    private var waiting: [RoomID: [Intake.WaitingCommand]] = [:]
    /// The one to be tried next first.
    private var order: [RoomID] = []
    private var delay: Int64 = 0
    private var nextTryAt: Int64 = 0

    private static let firstDelay: Int64 = 1_000
    private static let longestDelay: Int64 = 10_000

    var isEmpty: Bool { order.isEmpty }
    var count: Int { order.count }

    func contains(_ room: RoomID) -> Bool { waiting[room] != nil }

    /// Sets a room aside, with the command that the store failed on, if it was one.
    mutating func put(_ room: RoomID, _ command: Intake.WaitingCommand?, at uptime: Int64) {
        if order.isEmpty {
            delay = Self.firstDelay
            nextTryAt = uptime + delay
        }
        if waiting[room] == nil { order.append(room) }
        waiting[room, default: []] += command.map { [$0] } ?? []
    }

    /// Takes a later command of a room that is aside.
    mutating func add(_ command: Intake.WaitingCommand, to room: RoomID) { waiting[room]?.append(command) }

    /// The room to try now, with the first of its commands; nil where none is due.
    func due(at uptime: Int64) -> (room: RoomID, command: Intake.WaitingCommand?)? {
        guard uptime >= nextTryAt, let room = order.first else { return nil }
        return (room, waiting[room]?.first)
    }

    /// The store still fails on the room: others are tried before it.
    mutating func failed(_ room: RoomID, at uptime: Int64) {
        delay = min(delay * 2, Self.longestDelay)
        nextTryAt = uptime + delay
        order.removeAll { $0 == room }
        order.append(room)
    }

    /// Takes a room back; returns what waits.
    mutating func release(_ room: RoomID) -> [Intake.WaitingCommand] {
        order.removeAll { $0 == room }
        delay = Self.firstDelay
        return waiting.removeValue(forKey: room) ?? []
    }

    /// Forgets the commands of a channel that was closed: the broker delivers them again.
    mutating func dropCommands(of channel: Int) {
        for room in order { waiting[room]?.removeAll { $0.channel == channel } }
    }
}
