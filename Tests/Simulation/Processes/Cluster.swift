import MemoryStore
import Service

/// The processes of an installation, each started again after it ended, on clocks that outlive them.
final class Cluster {
    let world: World
    let broker: Broker
    let disk = MemoryDisk()
    private let log: Log
    private(set) var worker: SimulatedWorker?
    private(set) var schedulers: [SimulatedScheduler?]
    let workerClock: ProcessClock
    let schedulerClocks: [ProcessClock]
    private var workers = 0
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
        workerClock = clock(0)
        schedulerClocks = (1...3).map(clock)
        schedulers = Array(repeating: nil, count: scenario.schedulers)
    }

    func start() {
        startWorker()
        for index in schedulers.indices {
            world.timeline.after(world.dice.span(0...2_000)) { [self] in startScheduler(index) }
        }
    }

    private func pause() -> Int64 { world.isCalm ? 100 : world.dice.skewed(50...15_000) }

    private func startWorker() {
        workers += 1
        let worker = SimulatedWorker(number: workers, world: world, clock: workerClock)
        workerClock.lag = 0
        self.worker = worker
        worker.onEnd = { [unowned self, unowned worker] isClean in
            if !isClean { world.history.workerCrashes += 1 }
            world.history.note("\(worker.name) is gone, \(isClean ? "clean" : "crashed")")
            self.worker = nil
            world.timeline.after(pause()) { [self] in startWorker() }
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

    /// Everything that lives, worker first.
    var processes: [Process] { [worker].compactMap { $0 } + schedulers.compactMap { $0 } }

    var links: [SimulatedLink] { processes.flatMap(\.links) }
}
