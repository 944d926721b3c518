package import RoomCore
package import Store

/// What a memory store keeps: it outlives the store object, as a file outlives its process.
package final class MemoryDisk {
    package internal(set) var rooms: [RoomID: StoredRoom] = [:]
    var participants: [ParticipantRow: Participant] = [:]
    var answers: [CommandKey: AnswerRow] = [:]
    package internal(set) var outbox: [OutboxMessage] = []
    var runs: [String: Run] = [:]
    var attempts: Set<Attempt> = []
    /// Rooms whose participants of sessions below a number wait to be pruned.
    var leftovers: [RoomID: Int64] = [:]
    var lastPosition: Int64 = 0
    var lastAnswer: Int64 = 0
    /// The leases of a shared store, nil for those given up, and when that or the last renewal was by its clock.
    package internal(set) var leases: [String: (lease: Lease?, seenAt: Int64)] = [:]
    /// Whose events the outbox holds, by position, where the store is shared.
    var owners: [Int64: String] = [:]

    package init() {}

    struct ParticipantRow: Hashable {
        let room: RoomID
        let session: Int64
        let user: UserID
    }

    struct AnswerRow {
        let number: Int64
        let write: AnswerWrite
        let position: Int64?
    }

    struct Run {
        let row: RunRow
        var crashedAt: Instant?
    }

    struct Attempt: Hashable {
        let key: AttemptKey
        let run: String
    }

    /// Who is connected to a session, in byte order.
    package func connected(to room: RoomID, session: Int64) -> [Participant] {
        participants.filter { $0.key.room == room && $0.key.session == session }.map(\.value)
            .sorted { $0.user < $1.user }
    }
}
