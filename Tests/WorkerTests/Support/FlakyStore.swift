import RoomCore
import Store

/// The real store, failing on demand.
final class FlakyStore: RoomStore {
    enum Call: Hashable {
        case load, commit, unpublished, markPublished, liveRooms, participants, overdue, prune, beginRun
        case endRun, markAttempts, crashes, statistics, check
    }

    let real: any RoomStore
    private let fuse: Fuse
    /// Asked before each call: what it throws instead of being carried out.
    var failure: (Call) -> StoreError? = { _ in nil }
    /// Asked before each commit as well.
    var commitFailure: (BatchCommit) -> StoreError? = { _ in nil }
    /// Asked before each load as well.
    var loadFailure: (BatchRequest) -> StoreError? = { _ in nil }
    /// Asked after each call that was carried out: what is thrown all the same, as when the outcome is unknown.
    var doubt: (Call) -> StoreError? = { _ in nil }
    /// All that were carried out.
    private(set) var commits: [BatchCommit] = []
    private(set) var calls: [Call: Int] = [:]

    init(_ real: any RoomStore, fuse: Fuse) {
        self.real = real
        self.fuse = fuse
    }

    private func call<Result>(
        _ call: Call, writes: Bool, _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let dead = StoreError.io(code: -1, "the worker is dead")
        calls[call, default: 0] += 1
        if writes { guard fuse.pass() else { throw dead } } else if fuse.isBlown { throw dead }
        if let error = failure(call) { throw error }
        let result = try body()
        if let error = doubt(call) { throw error }
        if writes { guard fuse.pass() else { throw dead } }
        return result
    }

    func load(_ request: BatchRequest) throws(StoreError) -> BatchState {
        try call(.load, writes: false) { () throws(StoreError) in
            if let error = loadFailure(request) { throw error }
            return try real.load(request)
        }
    }

    func commit(_ batch: BatchCommit) throws(StoreError) -> [Int64] {
        try call(.commit, writes: true) { () throws(StoreError) in
            if let error = commitFailure(batch) { throw error }
            let positions = try real.commit(batch)
            commits.append(batch)
            return positions
        }
    }

    func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage] {
        try call(.unpublished, writes: false) { () throws(StoreError) in
            try real.unpublished(after: position, limit: limit)
        }
    }

    func markPublished(_ positions: [Int64]) throws(StoreError) {
        try call(.markPublished, writes: true) { () throws(StoreError) in try real.markPublished(positions) }
    }

    func liveRooms(after room: RoomID?, limit: Int) throws(StoreError) -> [Room] {
        try call(.liveRooms, writes: false) { () throws(StoreError) in
            try real.liveRooms(after: room, limit: limit)
        }
    }

    func participants(
        of room: RoomID, session: Int64, after user: UserID?, limit: Int
    ) throws(StoreError) -> [Participant] {
        try call(.participants, writes: false) { () throws(StoreError) in
            try real.participants(of: room, session: session, after: user, limit: limit)
        }
    }

    func overdue(at now: Instant, after last: RoomID?, limit: Int) throws(StoreError) -> OverduePage {
        try call(.overdue, writes: false) { () throws(StoreError) in
            try real.overdue(at: now, after: last, limit: limit)
        }
    }

    func moveLog() throws(StoreError) -> Bool { try real.moveLog() }

    func prune(_ retention: Retention, limit: Int) throws(StoreError) -> PruneCount {
        try call(.prune, writes: true) { () throws(StoreError) in try real.prune(retention, limit: limit) }
    }

    func beginRun(_ run: RunRow) throws(StoreError) -> [String] {
        try call(.beginRun, writes: true) { () throws(StoreError) in try real.beginRun(run) }
    }

    func endRun(_ id: String) throws(StoreError) {
        try call(.endRun, writes: true) { () throws(StoreError) in try real.endRun(id) }
    }

    func crashes(of keys: [AttemptKey]) throws(StoreError) -> [AttemptKey: Int] {
        try call(.crashes, writes: false) { () throws(StoreError) in try real.crashes(of: keys) }
    }

    func markAttempts(_ keys: [AttemptKey], run: String) throws(StoreError) {
        try call(.markAttempts, writes: true) { () throws(StoreError) in
            try real.markAttempts(keys, run: run)
        }
    }

    func statistics() throws(StoreError) -> StoreStatistics {
        try call(.statistics, writes: false) { () throws(StoreError) in try real.statistics() }
    }

    func check() throws(StoreError) {
        try call(.check, writes: true) { () throws(StoreError) in try real.check() }
    }

    func close() { real.close() }
}
