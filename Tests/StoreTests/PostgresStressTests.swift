import Glibc
import RoomCore
import Synchronization
import Testing

@testable import Store

/// Random work by several stores at once, compared with what each of them was told.
@Suite("stress of PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresStressTests {
    /// What the stores say they did, and what must therefore be found in the end.
    fileprivate struct Told: Sendable {
        /// Committed changes and events of each room.
        var changes: [RoomID: Int64] = [:]
        var events: [RoomID: Int64] = [:]
        /// Who answered each key.
        var answers: [CommandKey: UInt8] = [:]
        var published: [OutboxMessage] = []
        var commits = 0
        var conflicts = 0
        var doubts = 0
        var faults: [String] = []
    }

    private static let rooms = (0..<6).map { RoomID("room \($0)") }

    @Test(
        "three stores at once lose nothing and double nothing", arguments: [false, true])
    func stress(isKilled: Bool) throws {
        let database = try PostgresDatabase()
        let seed = UInt64.random(in: 0 ... .max)
        let told = Box()
        let stores = try (0..<3).map { _ in try database.open() }
        let end = ContinuousClock.now + .seconds(4)
        let workers = stores.enumerated().map { number, store in
            Blocking {
                let run = RunRow(id: "\(number)", pid: Int32(number + 1), host: "h", startedAt: .noon)
                while (try? store.beginRun(run)) == nil {}
                var writer = Writer(
                    number: UInt8(number), store: store,
                    random: SeededGenerator(seed: seed &+ UInt64(number)),
                    told: told)
                while ContinuousClock.now < end { try writer.step() }
                writer.settle()
            }
        }
        if isKilled {
            while ContinuousClock.now < end {
                usleep(120_000)
                try database.toStores("pg_terminate_backend")
            }
        }
        for worker in workers { try worker.value() }
        try compare(database, told.told.withLock { $0 }, seed: seed)
    }

    final class Box: Sendable {
        fileprivate let told = Mutex(Told())
    }

    private func compare(_ database: PostgresDatabase, _ told: Told, seed: UInt64) throws {
        let store = try database.open()
        #expect(told.faults.isEmpty, "seed \(seed)")
        #expect(
            told.commits > 50, "\(told.commits) commits, \(told.conflicts) conflicts, \(told.doubts) doubts")
        let state = try store.load(
            BatchRequest(rooms: Self.rooms, keys: Array(told.answers.keys)))
        try database.execute("UPDATE overtime.outbox SET owner = ''")
        let left = try store.unpublished(after: 1, limit: .max)
        let all = (left + told.published).sorted { $0.position < $1.position }
        #expect(Set(all.map(\.position)).count == all.count, "seed \(seed)")
        for id in Self.rooms {
            let stored = try #require(state.rooms[id])
            #expect(stored.version == told.changes[id] ?? 0, "seed \(seed)")
            #expect(stored.room.sequence == told.events[id] ?? 0, "seed \(seed)")
            let sequences = all.filter { $0.draft.room == id }.map(\.draft.sequence)
            #expect(sequences == Array(0..<(told.events[id] ?? 0)).map { $0 + 1 }, "seed \(seed)")
            let connected = try store.participants(of: id, session: 1, after: nil, limit: 99).count
            #expect(stored.room.session?.connected ?? 0 == Int64(connected), "seed \(seed)")
        }
        #expect(state.answers.mapValues { $0.reply.first } == told.answers.mapValues { $0 }, "seed \(seed)")
    }

    /// One store and what it does: loads some rooms, decides something on each, commits, and publishes some of it.
    private struct Writer {
        let number: UInt8
        let store: PostgresStore
        var random: SeededGenerator
        let told: Box
        private var doubtful: BatchCommit?
        private var mine: [OutboxMessage] = []
        private var publishing: [OutboxMessage] = []

        init(number: UInt8, store: PostgresStore, random: SeededGenerator, told: Box) {
            self.number = number
            self.store = store
            self.random = random
            self.told = told
        }

        mutating func step() throws {
            let ids = PostgresStressTests.rooms.filter { _ in Bool.random(using: &random) }
            let keys = ids.map {
                CommandKey(room: $0, id: CommandID("\(Int.random(in: 0..<400, using: &random))"))
            }
            let users = ids.map { _ in UserID("\(Int.random(in: 0..<5, using: &random))") }
            let people = zip(ids, users).map { ParticipantKey(room: $0, user: $1) }
            var batch = BatchCommit()
            do throws(StoreError) {
                let state = try store.load(
                    BatchRequest(
                        rooms: ids, participants: people, keys: keys + (doubtful?.answers.map(\.key) ?? [])))
                settleDoubt(state)
                for ((key, person), id) in zip(zip(keys, people), ids).shuffled(using: &random) {
                    guard state.answers[key] == nil, let stored = state.rooms[id] else { continue }
                    decide(stored, key, person, isConnected: state.participants[person] != nil, &batch)
                }
                publishing = mine.filter { _ in Bool.random(using: &random) }
                batch.published = publishing.map(\.position)
                applied(batch, try store.commit(batch))
            } catch {
                switch error {
                case .conflict: told.told.withLock { $0.conflicts += 1 }
                case .unreachable: if !batch.answers.isEmpty || !batch.published.isEmpty { doubt(batch) }
                default: told.told.withLock { $0.faults.append("\(error)") }
                }
            }
        }

        private mutating func decide(
            _ stored: StoredRoom, _ key: CommandKey, _ person: ParticipantKey, isConnected: Bool,
            _ batch: inout BatchCommit
        ) {
            var room = stored.room
            let isChanged = Int.random(in: 0..<4, using: &random) > 0
            if isChanged {
                if room.session == nil { room = .running(room.id, connected: 0, sequence: 0) }
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    room.sequence += 1
                    batch.outbox.append(draft(room.id, room.sequence))
                }
                if Bool.random(using: &random) {
                    room.definition = .sample(minutes: .random(in: 60...90, using: &random))
                }
                if isConnected {
                    room.session?.connected -= 1
                    batch.participants.append(
                        ParticipantWrite(room: room.id, session: 1, change: .left(person.user)))
                } else {
                    room.session?.connected += 1
                    let participant = Participant(user: person.user, role: .viewer, joinedAt: .noon)
                    batch.participants.append(
                        ParticipantWrite(room: room.id, session: 1, change: .connected(participant)))
                }
            }
            batch.rooms.append(
                RoomWrite(room: room, expectedVersion: stored.version, isChanged: isChanged))
            batch.answers.append(
                AnswerWrite(key: key, canonical: [], reply: [number], session: 1, at: .noon))
        }

        private mutating func applied(_ batch: BatchCommit, _ positions: [Int64]) {
            mine += zip(positions, batch.outbox).map { OutboxMessage(position: $0, draft: $1) }
            count(batch)
        }

        private mutating func count(_ batch: BatchCommit) {
            let published = publishing
            mine.removeAll(where: published.contains)
            told.told.withLock { told in
                told.commits += 1
                for write in batch.rooms where write.isChanged {
                    told.changes[write.room.id, default: 0] += 1
                }
                for draft in batch.outbox { told.events[draft.room, default: 0] += 1 }
                for answer in batch.answers where told.answers.updateValue(number, forKey: answer.key) != nil
                {
                    told.faults.append("\(answer.key) was answered twice")
                }
                told.published += published
            }
            publishing = []
        }

        /// A batch without answers tells nothing: what it removed is looked for.
        private mutating func doubt(_ batch: BatchCommit) {
            told.told.withLock { $0.doubts += 1 }
            doubtful = batch
        }

        private mutating func settleDoubt(_ state: BatchState) {
            guard let batch = doubtful else { return }
            doubtful = nil
            let found = batch.answers.filter { state.answers[$0.key]?.reply == [number] }.count
            guard found == 0 || found == batch.answers.count else {
                told.told.withLock { $0.faults.append("half of a batch was applied") }
                return
            }
            if batch.answers.isEmpty {
                // Deleting again tells nothing, and does no harm.
                if (try? store.markPublished(batch.published)) != nil {
                    count(batch)
                } else {
                    doubtful = batch
                }
            } else if found > 0 {
                count(batch)
            }
            publishing = []
        }

        mutating func settle() {
            for _ in 0..<200 {
                guard let batch = doubtful else { return }
                guard let state = try? store.load(BatchRequest(keys: batch.answers.map(\.key))) else {
                    continue
                }
                settleDoubt(state)
            }
            told.told.withLock { $0.faults.append("a doubt was left") }
        }
    }
}
