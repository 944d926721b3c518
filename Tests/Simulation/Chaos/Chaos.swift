import AMQP
import Contract
import RoomCore

/// Faults at random moments until the calm.
final class Chaos {
    static let subscriber: ShortString = "subscriber"

    private let world: World
    private let broker: Broker
    private let cluster: Cluster

    init(world: World, broker: Broker, cluster: Cluster) {
        self.world = world
        self.broker = broker
        self.cluster = cluster
    }

    func start() {
        every(20_000, .cutConnection, cutConnection)
        every(30_000, .closedChannel, closeChannel)
        every(60_000, .brokerRestart, restartBroker)
        every(40_000, .blocked, block)
        every(40_000, .refusedEvent, refuseEvents)
        every(80_000, .deletedQueue, deleteQueue)
        every(80_000, .deletedExchange, deleteExchange)
        every(15_000, .purgedTicks, purgeTicks)
        every(20_000, .strayTick, strayTick)
        every(40_000, .storeOutage, failStore)
        every(30_000, .workerCrash) { [self] in
            world.history.inject(.workerCrash)
            cluster.oneWorker()?.die()
        }
        every(40_000, .workerStop) { [self] in
            world.history.inject(.workerStop)
            cluster.oneWorker()?.stop()
        }
        every(30_000, .schedulerCrash) { [self] in
            world.history.inject(.schedulerCrash)
            oneScheduler()?.die()
        }
        every(50_000, .schedulerStop) { [self] in
            world.history.inject(.schedulerStop)
            oneScheduler()?.stop()
        }
        every(40_000, .frozenProcess) { [self] in freeze(.frozenProcess, withMachine: false) }
        every(60_000, .suspendedMachine) { [self] in freeze(.suspendedMachine, withMachine: true) }
        every(40_000, .clockStep, stepClock)
    }

    /// Ends what lasts. The broker's own dead letters need a queue that nothing tells the worker to miss, so an operator
    /// mends that one.
    func end() {
        broker.declareDeadLetters()
        broker.block(false)
        world.storeOutage = nil
        for queue in broker.queuesInOrder { queue.isRefusing = false }
        for process in cluster.processes { process.thaw?() }
    }

    private func every(_ usual: Int64, _ fault: Fault, _ action: @escaping () -> Void) {
        let rate = world.scenario.rate(fault)
        guard rate > 0 else { return }
        let mean = max(Double(usual) / rate, 1_000)
        world.timeline.after(world.dice.span(1...Int64(2 * mean))) { [self] in
            guard !world.isCalm else { return }
            action()
            every(usual, fault, action)
        }
    }

    private func oneScheduler() -> SimulatedScheduler? {
        let living = cluster.schedulers.compactMap { $0 }
        return living.isEmpty ? nil : world.dice.one(of: living)
    }

    // MARK: The broker

    /// When the broker notices that a connection is gone.
    private func noticeDelay() -> Int64 {
        guard world.strikes(.halfOpen, usual: 0.3) else { return 0 }
        world.history.inject(.halfOpen)
        return world.dice.span(500...20_000)
    }

    private func cutConnection() {
        let connected = cluster.links.filter(\.isConnected)
        guard !connected.isEmpty else { return }
        let link = world.dice.one(of: connected)
        world.history.inject(.cutConnection, link.name)
        link.cut(noticedAfter: noticeDelay())
    }

    private func closeChannel() {
        let connected = cluster.links.filter(\.isConnected)
        guard !connected.isEmpty else { return }
        let link = world.dice.one(of: connected)
        world.history.inject(.closedChannel, link.name)
        _ = link.closeOneChannel()
    }

    private func restartBroker() {
        guard broker.isUp else { return }
        let delay = world.dice.skewed(100...20_000)
        world.history.inject(.brokerRestart, "\(delay) ms")
        broker.restart(after: delay)
    }

    private func block() {
        guard !broker.isBlocked else { return }
        let duration = world.dice.skewed(200...30_000)
        world.history.inject(.blocked, "\(duration) ms")
        broker.block(true)
        world.timeline.after(duration) { [self] in if !world.isCalm { broker.block(false) } }
    }

    private func refuseEvents() {
        guard let queue = broker.queue(Self.subscriber), !queue.isRefusing else { return }
        let duration = world.dice.skewed(100...90_000)
        world.history.inject(.refusedEvent, "\(duration) ms")
        queue.isRefusing = true
        world.timeline.after(duration) { queue.isRefusing = false }
    }

    private func deleteQueue() {
        guard broker.isUp else { return }
        let topology = world.scenario.topology
        let own = broker.queuesInOrder.filter { $0.owner != nil }.map(\.name)
        let name = world.dice.one(
            of: topology.commandQueues + [topology.ticks, topology.queries, topology.dead] + own)
        world.history.inject(.deletedQueue, "\(name)")
        broker.deleteQueue(name)
    }

    private func deleteExchange() {
        guard broker.isUp else { return }
        let topology = world.scenario.topology
        let name = world.dice.one(of: [
            topology.commandsExchange, topology.eventsExchange, topology.ticks, topology.queries,
            topology.dead, topology.eventsTopicExchange,
        ])
        world.history.inject(.deletedExchange, "\(name)")
        broker.deleteExchange(name)
        guard world.dice.chance(0.3) else { return }
        // Somebody else makes it again at once, and knows of none of its bindings: nobody is refused anything.
        for step in topology.declarations(.active) {
            guard case .exchange(name, _, _, _, _, _) = step.declaration else { continue }
            _ = broker.declare(step, for: nil)
        }
    }

    private func purgeTicks() {
        guard let queue = broker.queue(world.scenario.topology.ticks) else { return }
        let purged = queue.purge()
        world.history.inject(.purgedTicks, "\(purged)")
    }

    /// Anybody may publish to the exchange of ticks.
    private func strayTick() {
        guard broker.isUp else { return }
        let scheduler = world.dice.one(of: ["0000000000000000", "zzzzzzzzzzzzzzzz"])
        let rooms = world.scenario.rooms.filter { _ in world.dice.chance(0.5) } + ["nobody's"]
        let body =
            world.dice.chance(0.2)
            ? Array("tick".utf8) : Tick(scheduler: scheduler, rooms: rooms).encode()
        world.history.inject(.strayTick)
        let message = Message(
            exchange: world.scenario.topology.ticks, routingKey: "", properties: Properties(), body: body)
        message.isSettled = true
        _ = broker.route(message, isMandatory: false)
    }

    // MARK: The store, processes and clocks

    private func failStore() {
        guard world.storeOutage == nil else { return }
        let duration = world.dice.skewed(100...40_000)
        let error = world.randomStoreError()
        world.history.inject(.storeOutage, "\(duration) ms: \(error)")
        world.storeOutage = error
        world.timeline.after(duration) { [self] in world.storeOutage = nil }
    }

    private func freeze(_ fault: Fault, withMachine: Bool) {
        let processes = cluster.processes
        guard !processes.isEmpty else { return }
        let process = world.dice.one(of: processes)
        let duration = world.dice.skewed(100...60_000)
        world.history.inject(fault, "\(process.name) \(duration) ms")
        process.freeze(for: duration, withMachine: withMachine)
    }

    private func stepClock() {
        let own = cluster.workerClocks.count > 1 ? cluster.workerClocks : []
        let clocks = [cluster.workerClock] + own + cluster.schedulerClocks.prefix(world.scenario.schedulers)
        let size = world.dice.skewed(100...1_800_000)
        let step = world.dice.chance(0.5) ? size : -size
        world.history.inject(.clockStep, "\(step) ms")
        // Clocks of one machine step together.
        if world.dice.chance(0.5) {
            for clock in clocks { clock.offset += step }
        } else {
            world.dice.one(of: clocks).offset += step
        }
    }
}
