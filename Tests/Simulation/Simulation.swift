import AMQP
import Contract
import MemoryStore
import RoomCore
import Service
import Store

/// One run from one seed: clients, a worker, some schedulers, a broker and a store, faults until the calm, then a check
/// of everything that happened.
package struct Simulation {
    package struct Result: Sendable {
        package let seed: UInt64
        package let violations: [String]
        package let commands: Int
        package let events: Int
        package let steps: Int
        package let simulatedMilliseconds: Int64
        package let faults: [Fault: Int]
        /// Two runs have it in common only where they were the same.
        package let digest: UInt64
        /// The last steps before the end; empty unless they were asked for.
        package let trace: [String]
    }

    static let audit: ShortString = "audit"
    /// Sessions that a step of the clock moved far away are waited for no longer than this.
    private static let longestCalm: Int64 = 4 * 3_600_000

    private let world: World
    private let broker: Broker
    private let cluster: Cluster
    private let clients: Clients
    private let chaos: Chaos
    private var watch: CalmWatch

    private init(seed: UInt64, isCrew: Bool, keepingSteps kept: Int) throws {
        world = try World(seed: seed, isCrew: isCrew, keepingSteps: kept)
        broker = Broker(world: world)
        cluster = Cluster(
            world: world, broker: broker,
            log: Log(component: "simulation", level: .error, format: .json, descriptor: -1))
        clients = Clients(world: world, broker: broker)
        chaos = Chaos(world: world, broker: broker, cluster: cluster)
        watch = CalmWatch(world: world, cluster: cluster)
    }

    /// - Parameter isCrew: several workers that share a store, instead of one that has it for itself.
    package static func run(
        seed: UInt64, isCrew: Bool = false, keepingSteps kept: Int = 0
    ) throws -> Result {
        var simulation = try Simulation(seed: seed, isCrew: isCrew, keepingSteps: kept)
        return simulation.run(seed: seed)
    }

    private mutating func run(seed: UInt64) -> Result {
        world.history.note(world.scenario.description)
        prepare()
        cluster.start()
        clients.start()
        chaos.start()
        world.timeline.run(until: world.scenario.duration)
        world.calm()
        chaos.end()
        let isDone = settle()
        var violations = watch.violations
        if world.timeline.isSpinning { violations.append("I8: spins") }
        if violations.isEmpty {
            let checker = Checker(world: world, broker: broker, cluster: cluster, clients: clients)
            violations = checker.violations()
            if !isDone {
                violations.append("I7: not converged \(Self.longestCalm / 60_000) minutes after the faults")
            }
        }
        let history = world.history
        defer { world.timeline.clear() }
        return Result(
            seed: seed, violations: violations, commands: clients.publishes.count,
            events: history.commits.reduce(0) { $0 + $1.batch.outbox.count }, steps: world.timeline.steps,
            simulatedMilliseconds: world.now, faults: history.faults, digest: history.digest,
            trace: Array(history.lastSteps))
    }

    /// The subscribers' queues, and who hears what the broker does.
    private func prepare() {
        let topology = world.scenario.topology
        broker.addSubscriber(Self.audit, to: topology.eventsExchange)
        broker.addSubscriber(Chaos.subscriber, to: topology.eventsExchange)
        broker.addSubscriber(Clients.replies, to: nil)
        let (world, clients) = (world, clients)
        broker.onLoss = { clients.lost($0) }
        broker.onArrival = { queue, message in
            if queue.name == Self.audit { world.history.published.append(message) }
            if queue.name == topology.dead { world.history.letters.append(message) }
            if queue.name == Self.audit || queue.name == topology.dead || queue.name == Clients.replies {
                world.history.note("\(queue.name) takes \(message.name)")
            }
        }
        broker.refuses = { queue, message in
            if queue.isRefusing { return true }
            switch queue.name {
            case Chaos.subscriber: return world.refuse(.refusedEvent, usual: 0.01, message)
            case topology.dead: return world.refuse(.refusedLetter, usual: 0.1, message)
            case Clients.replies:
                let isRefused = world.refuse(.refusedReply, usual: 0.005, message)
                if isRefused, let name = message.correlation { world.history.refusedReplies.insert(name) }
                return isRefused
            default: return false
            }
        }
        tidyUpRegularly()
    }

    private func tidyUpRegularly() {
        world.timeline.after(5_000) { [broker] in
            if broker.isUp { broker.tidyUp() }
            tidyUpRegularly()
        }
    }

    /// Lets everything come to rest; false where it does not.
    private mutating func settle() -> Bool {
        let end = world.now + Self.longestCalm
        while world.now < end, !world.timeline.isSpinning {
            world.timeline.run(until: world.now + 5_000)
            watch.look()
            guard watch.violations.isEmpty else { return false }
            if world.now >= world.calmAt + 30_000, isQuiet { return true }
        }
        return false
    }

    /// Nothing is under way, and no session will end by itself any more.
    private var isQuiet: Bool {
        let topology = world.scenario.topology
        guard cluster.disk.outbox.isEmpty, cluster.disk.rooms.values.allSatisfy({ $0.room.dueAt == nil })
        else { return false }
        for name in topology.commandQueues + [topology.ticks, topology.queries] {
            guard let queue = broker.queue(name), queue.ready.isEmpty, queue.undelivered.isEmpty
            else { return false }
        }
        return broker.connections.allSatisfy { $0.channels.allSatisfy { $0.unackedCount == 0 } }
    }
}

extension World {
    func refuse(_ fault: Fault, usual: Double, _ message: Message) -> Bool {
        guard strikes(fault, usual: usual) else { return false }
        history.inject(fault, message.name)
        return true
    }
}
