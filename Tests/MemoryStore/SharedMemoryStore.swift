package import RoomCore
package import Store

/// A store in memory that several workers share: one object for each of them, on one disk.
package final class SharedMemoryStore: MemoryStore, SharedStore {
    private let clock: () -> Int64
    /// Whose store this is, once its run has begun.
    private var mine = ""

    /// - Parameter clock: milliseconds since 1970; the same for all objects on a disk.
    package init(
        disk: MemoryDisk, clock: @escaping () -> Int64, gate: (any Gate)? = nil,
        onCommit: @escaping (BatchCommit, [Int64]) -> Void = { _, _ in }
    ) {
        self.clock = clock
        super.init(disk: disk, gate: gate, onCommit: onCommit)
    }

    // MARK: Leases

    package func now() throws(StoreError) -> Instant {
        try run(.now) { () throws(StoreError) in Instant(milliseconds: clock()) }
    }

    package func renewLease(_ lease: Lease) throws(StoreError) -> Roster {
        try run(.renewLease) { () throws(StoreError) in
            guard disk.runs[lease.run] != nil else { throw .refused("run \(lease.run) has not begun") }
            disk.leases[lease.run] = (lease, clock())
            let members = disk.leases.values.compactMap(\.lease).filter { holdsLease($0.run) }
                .sorted { Array($0.run.utf8).lexicographicallyPrecedes(Array($1.run.utf8)) }
                .compactMap { lease in
                    disk.runs[lease.run].map {
                        Roster.Member(lease: lease, pid: $0.row.pid, host: $0.row.host)
                    }
                }
            return Roster(now: Instant(milliseconds: clock()), members: members, crashed: crashed)
        }
    }

    package func releaseLease(of run: String) throws(StoreError) {
        try self.run(.releaseLease) { () throws(StoreError) in
            if disk.runs[run] != nil { disk.leases[run] = (nil, clock()) }
        }
    }

    private func holdsLease(_ run: String) -> Bool {
        disk.leases[run].map { $0.lease != nil && clock() - $0.seenAt < Lease.length } ?? false
    }

    private var crashed: [String] {
        disk.runs.values.map(\.row).filter { hasCrashed($0.id) }
            .sorted { ($0.startedAt, $0.id) < ($1.startedAt, $1.id) }.map(\.id)
    }

    override func hasCrashed(_ run: String) -> Bool {
        disk.runs[run] != nil && run != mine && !mayLive(run)
    }

    private func mayLive(_ run: String) -> Bool {
        disk.leases[run].map { clock() - $0.seenAt < ($0.lease == nil ? Lease.patience : Lease.length) }
            ?? false
    }

    // MARK: Runs

    package override func beginRun(_ run: RunRow) throws(StoreError) -> [String] {
        try self.run(.beginRun) { () throws(StoreError) in
            mine = run.id
            disk.runs[run.id] = MemoryDisk.Run(row: run)
            return crashed
        }
    }

    package override func endRun(_ id: String) throws(StoreError) {
        try super.endRun(id)
        disk.leases[id] = nil
    }

    // MARK: Rooms and events

    package override func load(_ request: BatchRequest) throws(StoreError) -> BatchState {
        var state = try super.load(request)
        state.now = Instant(milliseconds: clock())
        state.unsent = disk.outbox.filter { message in
            state.rooms[message.draft.room] != nil && disk.owners[message.position] != mine
        }
        return state
    }

    override func wrote(_ positions: [Int64]) {
        for position in positions { disk.owners[position] = mine }
    }

    /// Its own and orphaned events, and what stands before them in their rooms: a worker that lives may hold that back, and
    /// whoever publishes the rest without it breaks the room's order.
    package override func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage]
    {
        try run(.unpublished) { () throws(StoreError) in
            let last = lastPositions(where: isOwnOrOrphaned)
            let page = disk.outbox.lazy.filter {
                $0.position > position && $0.position <= last[$0.draft.room] ?? 0
            }
            return Array(page.prefix(limit))
        }
    }

    private func isOrphaned(_ message: OutboxMessage) -> Bool {
        guard let owner = disk.owners[message.position] else { return true }
        return owner != mine && !holdsLease(owner)
    }

    private func isOwnOrOrphaned(_ message: OutboxMessage) -> Bool {
        disk.owners[message.position] == mine || isOrphaned(message)
    }

    /// By room the last of the events that are meant.
    private func lastPositions(where isMeant: (OutboxMessage) -> Bool) -> [RoomID: Int64] {
        var last: [RoomID: Int64] = [:]
        for message in disk.outbox where isMeant(message) { last[message.draft.room] = message.position }
        return last
    }

    package func inherit(limit: Int) throws(StoreError) -> [OutboxMessage] {
        try run(.inherit) { () throws(StoreError) in
            let last = lastPositions(where: isOrphaned)
            let rooms = Set(last.sorted { $0.value < $1.value }.prefix(limit).map(\.key))
            let taken = disk.outbox.filter {
                rooms.contains($0.draft.room) && $0.position <= last[$0.draft.room] ?? 0
            }
            wrote(taken.filter(isOrphaned).map(\.position))
            return taken
        }
    }
}
