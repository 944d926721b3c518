import MemoryStore
import Service

/// The processes of an installation, each started again after it ended, on clocks that outlive them.
final class Cluster {
    let world: World
    let broker: Broker
    let disk = MemoryDisk()
    private let log: Log
    private(set) var workers: [SimulatedWorker?]
    private(set) var schedulers: [SimulatedScheduler?]
    /// The clock that rules: the worker's, or that of the store which several share.
    let workerClock: ProcessClock
    /// By worker.
    let workerClocks: [ProcessClock]
    let schedulerClocks: [ProcessClock]
    private var startedWorkers = 0
    private var started = 0

    init(world: World, broker: Broker, log: Log) {
        self.world = world
        self.broker = broker
        self.log = log
        let scenario = world.scenario
        func clock(_ index: Int) -> ProcessClock {
            ProcessClock(
                timeline: world.timeline, offset: scenario.skews[index],
                driftPerMillion: scenario.drifts[index])
        }
        let ruling = clock(0)
        workerClock = ruling
        workers = Array(repeating: nil, count: scenario.workers)
        workerClocks = scenario.workers == 1 ? [ruling] : (0..<scenario.workers).map(clock)
        schedulerClocks = (1...3).map(clock)
        schedulers = Array(repeating: nil, count: scenario.schedulers)
    }

    func start() {
        for index in workers.indices { startWorker(index) }
        for index in schedulers.indices {
            world.timeline.after(world.dice.span(0...2_000)) { [self] in startScheduler(index) }
        }
    }

    private func pause() -> Int64 { world.isCalm ? 100 : world.dice.skewed(50...15_000) }

    private func startWorker(_ index: Int) {
        startedWorkers += 1
        let worker = SimulatedWorker(
            number: startedWorkers, world: world, clock: workerClocks[index], storeClock: workerClock)
        workerClocks[index].lag = 0
        workers[index] = worker
        worker.onEnd = { [unowned self, unowned worker] isClean in
            if !isClean { world.history.workerCrashes += 1 }
            world.history.note("\(worker.name) is gone, \(isClean ? "clean" : "crashed")")
            workers[index] = nil
            world.timeline.after(pause()) { [self] in startWorker(index) }
        }
        world.history.note("\(worker.name) starts")
        _ = worker.start(disk: disk, broker: broker, log: log)
    }

    private func startScheduler(_ index: Int) {
        started += 1
        let scheduler = SimulatedScheduler(
            name: "scheduler-\(started)", world: world, clock: schedulerClocks[index])
        schedulers[index] = scheduler
        scheduler.onEnd = { [unowned self] _ in
            schedulers[index] = nil
            world.timeline.after(pause()) { [self] in startScheduler(index) }
        }
        world.history.note("\(scheduler.name) starts")
        scheduler.start(broker: broker, log: log)
    }

    /// One of the workers that live.
    func oneWorker() -> SimulatedWorker? {
        let living = workers.compactMap { $0 }
        return living.count > 1 ? world.dice.one(of: living) : living.first
    }

    /// Everything that lives, workers first.
    var processes: [Process] { workers.compactMap { $0 } + schedulers.compactMap { $0 } }

    var links: [SimulatedLink] { processes.flatMap(\.links) }
}
