package import Contract
package import RoomCore
import Service

/// What the worker needs to know of the configuration, and its bounds.
package struct WorkerSettings: Sendable {
    package var topology: Topology
    package var rooms: RoomSettings
    /// CloudEvents' `source`.
    package var source: String
    /// The `user_id`s that may act without being in a room.
    package var operators: Set<String>
    /// How long command ids are kept, at least.
    package var idRetention: TimeSpan
    /// How long a room is kept after its last session.
    package var roomRetention: TimeSpan

    /// The most rooms and commands in one transaction.
    package var batchSize = 1024
    /// The most bytes of bodies in one transaction, but for its last command: their copies are held beside them.
    package var batchBytes = 8 << 20
    /// Unacknowledged commands that the broker may hand out, for all shards together; a shard's part is twice what
    /// it would be by their number (`WorkerPlans`).
    package var prefetch: UInt16 = 2048
    /// Events in hand above which no new work is taken.
    package var eventBound = 20_000
    /// Milliseconds that a stop waits for confirms.
    package var stopGrace: Int64 = 5_000
    /// Crashed attempts after which a message is given up as `crashed_worker`.
    package var attempts = 3

    package init(
        topology: Topology, rooms: RoomSettings, source: String, operators: Set<String>,
        idRetention: TimeSpan,
        roomRetention: TimeSpan
    ) {
        self.topology = topology
        self.rooms = rooms
        self.source = source
        self.operators = operators
        self.idRetention = idRetention
        self.roomRetention = roomRetention
    }
}
