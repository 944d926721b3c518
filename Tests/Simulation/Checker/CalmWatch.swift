import MemoryStore
import RoomCore
import Scheduler
import Store

/// Looks at the calm while it lasts: schedulers know what the store knows, and nothing comes late any more.
struct CalmWatch {
    private let world: World
    private let cluster: Cluster
    private(set) var violations: [String] = []
    private var seen = 0

    private static let latest: Int64 = 3_000

    init(world: World, cluster: Cluster) {
        self.world = world
        self.cluster = cluster
    }

    mutating func look() {
        let settledAt = world.settledAt
        defer { seen = world.history.commits.count }
        for commit in world.history.commits[seen...] where commit.at > settledAt {
            for draft in commit.batch.outbox {
                checkLateness(draft.messageID, draft.body, at: commit.at, settledAt)
            }
        }
        guard world.now > settledAt else { return }
        checkAgendas()
    }

    private mutating func checkLateness(_ id: String, _ body: [UInt8], at: Int64, _ settledAt: Int64) {
        guard let fact = EventFact(body), let lateBy = fact.lateBy else { return }
        let dueAt = max(at - lateBy, settledAt)
        guard at - dueAt > Self.latest else { return }
        violations.append("I5: \(id) \(fact.type) came \(lateBy) ms late in the calm")
    }

    private mutating func checkAgendas() {
        let workerNow = cluster.workerClock.nowMilliseconds()
        for stored in cluster.disk.rooms.values.sorted(by: { $0.room.id < $1.room.id }) {
            let room = stored.room
            let changedAt = room.session?.changedAt.milliseconds ?? 0
            // What changes just now is still on its way.
            guard abs(workerNow - changedAt) > Self.latest else { continue }
            guard let due = room.dueAt, abs(due.milliseconds - workerNow) > Self.latest else { continue }
            for scheduler in cluster.schedulers.compactMap({ $0 }) {
                if let problem = difference(scheduler.agenda?.dueAt[room.id], due) {
                    violations.append("I7: \(scheduler.name) has \(problem) for \(room.id)")
                }
            }
        }
    }

    /// What a scheduler knows must not be later than what the store knows. Earlier is harmless, and a room too many: it
    /// fires, and the answer sets it right.
    private func difference(_ known: Instant??, _ due: Instant) -> String? {
        switch known {
        case nil: return "nothing"
        case .some(.some(let at)) where at > due:
            return "\((at - due).milliseconds) ms too late a due instant"
        case .some: return nil
        }
    }
}
