import AMQP
import Contract
import MemoryStore
import RoomCore
import Service
import Store
import Worker

/// A worker as a process: the real one, on simulated links and the store that outlives it.
final class SimulatedWorker: Process {
    private let settings: WorkerSettings
    private let identity: RunRow
    private var worker: Worker?
    private var gate: StoreFaults?
    private var inbox: [Worker.Input] = []

    /// The clock that counts: its own, or that of the store which several workers share.
    private let storeClock: ProcessClock

    init(number: Int, world: World, clock: ProcessClock, storeClock: ProcessClock) {
        self.storeClock = storeClock
        settings = world.scenario.worker
        identity = RunRow(
            id: "run-\(number)", pid: Int32(number), host: "host",
            startedAt: Instant(milliseconds: clock.nowMilliseconds()))
        super.init(name: "worker-\(number)", world: world, clock: clock)
    }

    /// Opens the store and connects; false where the store does not let it.
    func start(disk: MemoryDisk, broker: Broker, log: Log) -> Bool {
        let gate = StoreFaults(world: world, process: self)
        self.gate = gate
        let store = openStore(disk, gate)
        let crashed: [String]
        do throws(StoreError) {
            crashed = try store.beginRun(identity)
        } catch {
            die()
            return false
        }
        let plans = WorkerPlans(settings: settings, mode: .active)
        let consumer = SimulatedLink(
            name: "\(name) consumer", world: world, broker: broker, process: self, plans: { plans.consumer }
        ) { [unowned self] in put($0.map(Worker.Input.consumer)) }
        let publisher = SimulatedLink(
            name: "\(name) publisher", world: world, broker: broker, process: self, plans: { plans.publisher }
        ) { [unowned self] in put($0.map(Worker.Input.publisher)) }
        worker = Worker(
            store: store, consumer: consumer, publisher: publisher, clock: clock, log: log,
            settings: settings, identity: identity, crashedRuns: crashed,
            outboxLimits: world.scenario.outboxLimits)
        links = [consumer, publisher]
        for link in links { link.start() }
        wake(after: 0)
        return true
    }

    private func openStore(_ disk: MemoryDisk, _ gate: StoreFaults) -> MemoryStore {
        guard world.scenario.workers > 1 else {
            return MemoryStore(disk: disk, gate: gate) { [unowned self] in committed($0, $1) }
        }
        return SharedMemoryStore(
            disk: disk, clock: { [storeClock] in storeClock.nowMilliseconds() }, gate: gate
        ) {
            [unowned self] in committed($0, $1)
        }
    }

    /// SIGTERM.
    func stop() { put([.stop]) }

    private func put(_ inputs: [Worker.Input]) {
        guard !isDead, !inputs.isEmpty else { return }
        inbox += inputs
        if !isFrozen { wake(after: world.dice.span(0...1)) }
    }

    override func turn() -> Int64? {
        guard let worker else { return 1_000 }
        let inputs = inbox
        inbox = []
        let uptime = clock.uptime
        worker.handle(inputs, at: uptime)
        guard !isDead else { return 0 }
        let wait = worker.run(at: uptime)
        guard !isDead else { return 0 }
        if let error = worker.fatal {
            world.history.note("\(name) gives up: \(error)")
            die()
            return 0
        }
        return worker.isStopped ? nil : wait
    }

    private func committed(_ batch: BatchCommit, _ positions: [Int64]) {
        for draft in batch.outbox { world.history.mix(draft.body) }
        world.history.mix(UInt64(batch.answers.count))
        for draft in batch.outbox {
            world.history.note("\(name) commits \(draft.messageID) \(draft.type)")
        }
        for answer in batch.answers {
            world.history.note("\(name) commits the answer to \(answer.key.room) \(answer.key.id)")
        }
        world.history.commits.append(
            History.Commit(
                at: world.now, wall: storeClock.nowMilliseconds(), batch: batch, positions: positions))
    }
}
