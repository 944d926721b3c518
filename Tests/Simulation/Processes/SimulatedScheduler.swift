import AMQP
import Contract
import RoomCore
import Scheduler
import Service

/// A scheduler as a process: the real one, on simulated links.
final class SimulatedScheduler: Process {
    private var scheduler: Scheduler?
    private var watch: TopologyWatch?
    private var inbox: [Scheduler.Input] = []

    var agenda: Agenda? { scheduler?.agenda }

    func start(broker: Broker, log: Log) {
        let tokens = Tokens(world: world)
        let topology = world.scenario.topology
        let plans = SchedulerPlans(topology: topology, mode: .active) { tokens.next() }
        let consumer = SimulatedLink(
            name: "\(name) consumer", world: world, broker: broker, process: self, plans: plans.consumer
        ) { [unowned self] events in
            plans.note(events)
            put(events.map(Scheduler.Input.consumer))
        }
        let publisher = SimulatedLink(
            name: "\(name) publisher", world: world, broker: broker, process: self, plans: { plans.publisher }
        ) { [unowned self] in put($0.map(Scheduler.Input.publisher)) }
        let reopen: @Sendable (Int) -> Void = { [unowned consumer] in
            consumer.closeChannel($0)
            consumer.openChannel($0)
        }
        scheduler = Scheduler(
            id: tokens.next(), topology: topology,
            outlet: Scheduler.Outlet(
                publish: { publisher.publish($0, on: 0, generation: $1) },
                listen: { [unowned consumer] in $1 ? consumer.openChannel($0) : consumer.closeChannel($0) }),
            answersQueue: { plans.answersQueue }, clock: clock, log: log)
        watch = TopologyWatch(reopen: reopen)
        links = [consumer, publisher]
        for link in links { link.start() }
        wake(after: 0)
    }

    /// SIGTERM.
    func stop() { put([.stop]) }

    private func put(_ inputs: [Scheduler.Input]) {
        guard !isDead, !inputs.isEmpty else { return }
        inbox += inputs
        if !isFrozen { wake(after: world.dice.span(0...1)) }
    }

    override func turn() -> Int64? {
        guard let scheduler else { return 1_000 }
        let inputs = inbox.filter {
            if case .consumer(let event) = $0 { watch?.handle(event) != true } else { true }
        }
        inbox = []
        let uptime = clock.uptime
        scheduler.handle(inputs, at: uptime)
        watch?.look(at: uptime)
        guard !scheduler.isStopped else { return nil }
        return scheduler.run(at: uptime)
    }

    /// `@unchecked Sendable` because a simulation runs on one thread; the plans ask for it.
    private final class Tokens: @unchecked Sendable {
        private let world: World

        init(world: World) { self.world = world }

        func next() -> String { RandomToken.make(using: &world.dice) }
    }
}
