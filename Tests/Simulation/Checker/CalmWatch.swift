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

    /// After this much of calm everything is on time: retries are at most 30 s apart; a step of the worker's clock, and an
    /// exchange that was deleted in front of a queue, are found with the snapshot that is taken every 5 minutes.
    private let settling: Int64
    private static let latest: Int64 = 3_000

    init(world: World, cluster: Cluster) {
        self.world = world
        self.cluster = cluster
        let isFoundLate = world.scenario.rate(.clockStep) > 0 || world.scenario.rate(.deletedExchange) > 0
        settling = isFoundLate ? 340_000 : 45_000
    }

    mutating func look() {
        let settledAt = world.calmAt + settling
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
            if let due = room.dueAt, abs(due.milliseconds - workerNow) <= Self.latest { continue }
            for scheduler in cluster.schedulers.compactMap({ $0 }) {
                guard let agenda = scheduler.agenda, (agenda.dueAt[room.id] ?? nil) != room.dueAt else {
                    continue
                }
                let known =
                    agenda.dueAt[room.id].map { $0.map { "\($0.milliseconds)" } ?? "fired" } ?? "nothing"
                violations.append(
                    "I7: \(scheduler.name) has \(known) for \(room.id), the store \(room.dueAt?.milliseconds ?? 0)"
                )
            }
        }
    }
}
