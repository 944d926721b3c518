package import RoomCore
package import Store

/// A store in memory, for the simulation: small, quick, and able to fail where it is told to.
///
/// It passes the same conformance suite as the real ones. Nothing is written before everything was checked, so a
/// refused batch leaves no trace.
package class MemoryStore: RoomStore {
    /// Asked before and after each call: it may throw, as a store that fails does, with or without having done what
    /// it was asked.
    package protocol Gate: AnyObject {
        func before(_ call: Call, on rooms: [RoomID]) throws(StoreError)
        func after(_ call: Call) throws(StoreError)
    }

    package enum Call: Equatable {
        case load, commit, unpublished, markPublished, liveRooms, participants, overdue, prune
        case beginRun, endRun, markAttempts, statistics, check
        case now, renewLease, releaseLease, inherit, crashes

        package var isWrite: Bool {
            switch self {
            case .commit, .markPublished, .prune, .beginRun, .endRun, .markAttempts, .check,
                .renewLease, .releaseLease, .inherit:
                true
            case .load, .unpublished, .liveRooms, .participants, .overdue, .statistics, .now, .crashes: false
            }
        }
    }

    package let disk: MemoryDisk
    /// How many messages were marked as being tried, by this store.
    package private(set) var marks = 0
    private let gate: (any Gate)?
    private let onCommit: (BatchCommit, [Int64]) -> Void
    private var isClosed = false
    /// The last answer that `prune` looked at.
    var answersCursor: (at: Instant, number: Int64)?

    /// - Parameter onCommit: told of each batch once it is durable, whatever the caller is told.
    package init(
        disk: MemoryDisk = MemoryDisk(), gate: (any Gate)? = nil,
        onCommit: @escaping (BatchCommit, [Int64]) -> Void = { _, _ in }
    ) {
        self.disk = disk
        self.gate = gate
        self.onCommit = onCommit
    }

    package func close() { isClosed = true }

    func run<Result>(
        _ call: Call, on rooms: [RoomID] = [], _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        guard !isClosed else { throw .closed }
        try gate?.before(call, on: rooms)
        let result = try body()
        try gate?.after(call)
        return result
    }

    package func load(_ request: BatchRequest) throws(StoreError) -> BatchState {
        let rooms = request.rooms + request.participants.map(\.room)
        return try run(.load, on: rooms) { () throws(StoreError) in
            var state = BatchState()
            for id in rooms where state.rooms[id] == nil {
                state.rooms[id] = disk.rooms[id] ?? StoredRoom(room: Room(id: id), version: 0)
            }
            for key in request.participants {
                guard let session = state.rooms[key.room]?.room.session, session.isLive else { continue }
                let row = MemoryDisk.ParticipantRow(room: key.room, session: session.number, user: key.user)
                state.participants[key] = disk.participants[row]
            }
            for key in request.keys {
                guard let found = disk.answers[key] else { continue }
                state.answers[key] = StoredAnswer(
                    canonical: found.write.canonical, reply: found.write.reply,
                    outboxPositionUpTo: found.position)
            }
            return state
        }
    }

    package func commit(_ batch: BatchCommit) throws(StoreError) -> [Int64] {
        try run(.commit) { () throws(StoreError) in
            try check(batch)
            for write in batch.rooms where write.isChanged { self.write(write.room) }
            for write in batch.participants { self.write(write) }
            var last: [RoomID: Int64] = [:]
            var positions: [Int64] = []
            for draft in batch.outbox {
                disk.lastPosition += 1
                disk.outbox.append(OutboxMessage(position: disk.lastPosition, draft: draft))
                positions.append(disk.lastPosition)
                last[draft.room] = disk.lastPosition
            }
            wrote(positions)
            for answer in batch.answers {
                disk.lastAnswer += 1
                disk.answers[answer.key] = MemoryDisk.AnswerRow(
                    number: disk.lastAnswer, write: answer, position: last[answer.key.room])
            }
            remove(batch.published)
            let cleared = Set(batch.clearedAttempts)
            if !cleared.isEmpty { disk.attempts = disk.attempts.filter { !cleared.contains($0.key) } }
            onCommit(batch, positions)
            return positions
        }
    }

    /// Everything that could refuse a batch, before anything is written.
    private func check(_ batch: BatchCommit) throws(StoreError) {
        let conflicts = batch.rooms.filter { (disk.rooms[$0.room.id]?.version ?? 0) != $0.expectedVersion }
        guard conflicts.isEmpty else { throw .conflict(conflicts.map(\.room.id)) }
        guard Set(batch.rooms.map(\.room.id)).count == batch.rooms.count else {
            throw .refused("a batch names a room twice")
        }
        for write in batch.rooms {
            guard let session = write.room.session else { continue }
            guard session.number == write.room.sessionNumber, session.connected >= 0 else {
                throw .refused("room \(write.room.id.text) makes no sense")
            }
        }
        var keys: Set<CommandKey> = []
        for answer in batch.answers where disk.answers[answer.key] != nil || !keys.insert(answer.key).inserted
        {
            throw .refused("the key \(answer.key.id.text) was used before")
        }
    }

    /// Takes note of whose events were committed.
    func wrote(_ positions: [Int64]) {}

    func write(_ room: Room) {
        let old = disk.rooms[room.id]
        disk.rooms[room.id] = StoredRoom(room: room, version: (old?.version ?? 0) + 1)
        let isOldLive = old?.room.session?.isLive == true
        let lastOver = room.session?.isLive == true ? room.sessionNumber - 1 : room.sessionNumber
        let firstWithRows = old.map { isOldLive ? $0.room.sessionNumber : $0.room.sessionNumber + 1 } ?? 1
        guard lastOver >= firstWithRows else { return }
        disk.leftovers[room.id] = max(disk.leftovers[room.id] ?? 0, lastOver + 1)
    }

    private func write(_ write: ParticipantWrite) {
        switch write.change {
        case .connected(let participant):
            disk.participants[row(write, participant.user)] = participant
        case .left(let user):
            disk.participants[row(write, user)] = nil
        }
    }

    private func row(_ write: ParticipantWrite, _ user: UserID) -> MemoryDisk.ParticipantRow {
        MemoryDisk.ParticipantRow(room: write.room, session: write.session, user: user)
    }

    private func remove(_ positions: [Int64]) {
        let gone = Set(positions)
        guard !gone.isEmpty else { return }
        disk.outbox.removeAll { gone.contains($0.position) }
        for position in gone { disk.owners[position] = nil }
    }

    package func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage] {
        try run(.unpublished) { () throws(StoreError) in
            Array(disk.outbox.lazy.filter { $0.position > position }.prefix(limit))
        }
    }

    package func markPublished(_ positions: [Int64]) throws(StoreError) {
        try run(.markPublished) { () throws(StoreError) in remove(positions) }
    }

    // MARK: Runs and attempts

    package func beginRun(_ run: RunRow) throws(StoreError) -> [String] {
        try self.run(.beginRun) { () throws(StoreError) in
            let named = Set(disk.attempts.map(\.run))
            disk.runs = disk.runs.filter { $0.value.crashedAt == nil || named.contains($0.key) }
            for id in Array(disk.runs.keys) where id != run.id && disk.runs[id]?.crashedAt == nil {
                disk.runs[id]?.crashedAt = run.startedAt
            }
            disk.runs[run.id] = MemoryDisk.Run(row: disk.runs[run.id]?.row ?? run)
            return disk.runs.values.filter { $0.crashedAt != nil }.map(\.row)
                .sorted { ($0.startedAt, $0.id) < ($1.startedAt, $1.id) }.map(\.id)
        }
    }

    package func endRun(_ id: String) throws(StoreError) {
        try run(.endRun) { () throws(StoreError) in
            disk.runs[id] = nil
            disk.attempts = disk.attempts.filter { $0.run != id }
        }
    }

    package func markAttempts(_ keys: [AttemptKey], run: String) throws(StoreError) {
        try self.run(.markAttempts) { () throws(StoreError) in
            marks += keys.count
            for key in keys { disk.attempts.insert(MemoryDisk.Attempt(key: key, run: run)) }
        }
    }

    package func crashes(of keys: [AttemptKey]) throws(StoreError) -> [AttemptKey: Int] {
        try run(.crashes) { () throws(StoreError) in
            let asked = Set(keys)
            return disk.attempts.filter { asked.contains($0.key) && hasCrashed($0.run) }
                .reduce(into: [:]) { $0[$1.key, default: 0] += 1 }
        }
    }

    /// Whether marks of a run count.
    func hasCrashed(_ run: String) -> Bool { disk.runs[run]?.crashedAt != nil }
}
