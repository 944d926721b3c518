import RoomCore
import Testing

@testable import Store

@Suite("costs on PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresCostTests {
    /// What one call costs by the count of the connection.
    private func traffic(_ store: PostgresStore, _ body: () throws -> Void) rethrows -> [Int] {
        let before = store.traffic
        try body()
        let after = store.traffic
        return [after.roundTrips - before.roundTrips, after.statements - before.statements]
    }

    /// A batch that does something of each kind to so many rooms: new ones, ones with a change of their definition,
    /// ones that are extended, ended or only read; with joins, leaves, answers, events and marks.
    private func batch(_ state: BatchState, _ rooms: Int, round: Int, published: [Int64]) -> BatchCommit {
        var batch = BatchCommit(published: published)
        func add(_ id: RoomID, isChanged: Bool = true, _ change: (inout Room) -> Void) {
            guard let stored = state.rooms[id] else { return }
            var room = stored.room
            change(&room)
            batch.rooms.append(RoomWrite(room: room, expectedVersion: stored.version, isChanged: isChanged))
            batch.outbox.append(draft(id, Int64(round)))
            batch.answers.append(answer(id, CommandID("\(round)")))
        }
        for number in 0..<rooms {
            add(RoomID("new \(round) \(number)")) { $0 = .running($0.id) }
            add(RoomID("extended \(number)")) { $0.sequence += 1 }
            add(RoomID("defined \(number)")) { $0.definition = .sample(minutes: Int64(60 + round)) }
            add(RoomID("ended \(number)")) { room in
                room.session = nil
                room = Room.running(room.id, session: Int64(round + 1)).ended(at: .noon)
            }
            add(RoomID("read \(number)"), isChanged: false) { _ in }
            let id = RoomID("extended \(number)")
            let ann = Participant(user: "ann", role: .viewer, joinedAt: .noon)
            batch.participants += [
                ParticipantWrite(room: id, session: 1, change: .connected(ann)),
                ParticipantWrite(room: id, session: 1, change: .left("ben")),
            ]
            batch.clearedAttempts.append(AttemptKey("\(number)"))
        }
        return batch
    }

    @Test("a batch of 1,000 rooms takes the round trips and statements of a batch of one")
    func batchSize() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        let kinds = ["extended", "defined", "ended", "read"]
        try store.putNew(kinds.flatMap { kind in (0..<1_000).map { .running(RoomID("\(kind) \($0)")) } })
        var found: [[[Int]]] = []
        var published: [Int64] = [1]
        for (round, rooms) in [1, 1_000, 1, 1_000].enumerated() {
            let ids = (0..<rooms).flatMap { number in
                (kinds + ["new \(round)"]).map { RoomID("\($0) \(number)") }
            }
            let request = BatchRequest(
                rooms: ids, participants: ids.map { ParticipantKey(room: $0, user: "ann") },
                keys: ids.map { CommandKey(room: $0, id: CommandID("\(round)")) })
            var state = BatchState()
            let load = try traffic(store) { state = try store.load(request) }
            #expect(state.rooms.count == rooms * 5)
            let batch = batch(state, rooms, round: round, published: published)
            let commit = try traffic(store) { published = try store.commit(batch) }
            #expect(published.count == rooms * 5)
            found.append([load, commit])
        }
        #expect(found == [[[Int]]](repeating: [[1, 5], [2, 14]], count: 4))
    }

    @Test("no other call takes more round trips for more rows")
    func otherCalls() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        _ = try store.beginRun(RunRow(id: "run", pid: 1, host: "h", startedAt: .noon))
        try store.putNew((0..<2_000).map { .running(RoomID("\($0)")) })
        _ = try store.commit(BatchCommit(outbox: (0..<500).map { draft(RoomID("\($0)"), 1) }))
        try database.execute("UPDATE overtime.outbox SET owner = 'gone'")
        let keys = (0..<1_000).map { AttemptKey("\($0)") }
        let lease = Lease(run: "run", shards: 1, consumed: [], clockOffset: 0)
        #expect(try traffic(store) { _ = try store.inherit(limit: 500) } == [2, 4])
        #expect(try traffic(store) { _ = try store.unpublished(after: 1, limit: 500) } == [1, 1])
        #expect(try traffic(store) { try store.markPublished(Array(1...500)) } == [2, 4])
        #expect(try traffic(store) { _ = try store.liveRooms(after: nil, limit: 2_000) } == [1, 1])
        #expect(try traffic(store) { _ = try store.overdue(at: .noon, after: nil, limit: 2_000) } == [1, 1])
        #expect(try traffic(store) { try store.markAttempts(keys, run: "run") } == [2, 3])
        #expect(try traffic(store) { _ = try store.crashes(of: keys) } == [1, 1])
        #expect(try traffic(store) { _ = try store.renewLease(lease) } == [2, 8])
        #expect(try traffic(store) { _ = try store.statistics() } == [1, 4])
    }
}
