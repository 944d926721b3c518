package import AMQP
package import Contract
import Glibc
import HTTP
import Metrics
package import Service
import Synchronization

/// The scheduler as a process: one connection that listens, one that fires, no state of its own.
package struct SchedulerProcess: Sendable {
    package let topology: Topology
    package let connection: @Sendable (_ name: String) -> LinkConfiguration
    /// False where shared objects are only checked for existence.
    package let declares: Bool
    /// Where metrics and health are served; nil for nowhere.
    package let http: Configuration.HTTPAddress?
    package let log: Log
    package let version: String

    package init(
        topology: Topology, connection: @escaping @Sendable (String) -> LinkConfiguration, declares: Bool,
        http: Configuration.HTTPAddress?, log: Log,
        version: String
    ) {
        self.topology = topology
        self.connection = connection
        self.declares = declares
        self.http = http
        self.log = log
        self.version = version
    }

    /// Runs until a stop signal, or until something is wrong for good.
    package func run() -> ProcessExit {
        let mailbox = Mailbox<Scheduler.Input>()
        guard Signals.stopService(log: log, { mailbox.put(.stop) }) else { return .configuration }
        let id = RandomToken.make()
        log.info("starting", ["version": version, "scheduler": id, "pid": getpid()])
        let server: StatusServer?
        do throws(ListenError) {
            server = try StatusServer.start(http, source: .scheduler, version: version, log: log)
        } catch {
            return .configuration
        }
        defer { server?.stop() }
        let plans = SchedulerPlans(topology: topology, mode: declares ? .active : .passive)
        let consumer = Link(
            configuration: connection("overtime scheduler (consumer)"), channels: { plans.consumer() },
            observer: { events in
                plans.note(events)
                mailbox.put(events.lazy.map(Scheduler.Input.consumer))
            })
        let publisher = Link(
            configuration: connection("overtime scheduler (publisher)"), channels: { plans.publisher },
            observer: { events in mailbox.put(events.lazy.map(Scheduler.Input.publisher)) })
        let reopen: @Sendable (Int) -> Void = {
            consumer.closeChannel($0)
            consumer.openChannel($0)
        }
        let scheduler = Scheduler(
            id: id, topology: topology,
            outlet: Scheduler.Outlet(
                publish: { publisher.publish($0, on: 0, generation: $1) },
                listen: { $1 ? consumer.openChannel($0) : consumer.closeChannel($0) }),
            answersQueue: { plans.answersQueue }, clock: SystemClock(), log: log)
        consumer.start()
        publisher.start()
        defer {
            // Both at once: beside a broker that answers nothing each takes its two seconds.
            consumer.requestStop()
            publisher.requestStop()
            consumer.stop()
            publisher.stop()
        }
        return drive(
            scheduler, watch: TopologyWatch(reopen: reopen), mailbox: mailbox, board: server?.board)
    }

    private func drive(
        _ scheduler: Scheduler, watch: TopologyWatch, mailbox: Mailbox<Scheduler.Input>, board: StatusBoard?
    ) -> ProcessExit {
        var watch = watch
        var gate = SchedulerPlans.startGate
        var wait: Int64 = 0
        var inputs: [Scheduler.Input] = []
        while true {
            mailbox.take(into: &inputs, timeoutMilliseconds: wait)
            if !gate.hasStarted, let error = note(inputs, in: &gate) {
                return gaveUp(error)
            }
            let uptime = MonotonicClock.milliseconds()
            inputs.removeAll { if case .consumer(let event) = $0 { watch.handle(event) } else { false } }
            scheduler.handle(inputs, at: uptime)
            watch.look(at: uptime)
            if scheduler.isStopped {
                log.info("stopped")
                return .ok
            }
            // Read anew: after a long `handle` the old value would look like a step of the wall clock.
            let later = MonotonicClock.milliseconds()
            wait = scheduler.run(at: later)
            board?.turned(at: later) { scheduler.status }
        }
    }

    private func gaveUp(_ error: AMQPError) -> ProcessExit {
        if error.kind == .resources {
            log.error("giving up: the system has no room for this scheduler", ["error": error.description])
            return .resources
        }
        log.error("giving up: the broker refuses what this scheduler needs", ["error": error.description])
        return .configuration
    }

    private func note(_ inputs: [Scheduler.Input], in gate: inout StartGate) -> AMQPError? {
        for input in inputs {
            switch input {
            case .consumer(let event): if let error = gate.note(event, of: "consumer") { return error }
            case .publisher(let event): if let error = gate.note(event, of: "publisher") { return error }
            case .stop: break
            }
        }
        return nil
    }
}

/// What the scheduler's channels declare and consume each time they open. Its own queues get new names with each
/// connection, since the broker may still hold the old ones for a connection it believes alive.
package final class SchedulerPlans: Sendable {
    private let topology: Topology
    private let mode: DeclareMode
    private let makeToken: @Sendable () -> String
    private let token: Mutex<String>

    /// - Parameter makeToken: names that no other process has.
    package init(
        topology: Topology, mode: DeclareMode,
        makeToken: @escaping @Sendable () -> String = { RandomToken.make() }
    ) {
        self.topology = topology
        self.mode = mode
        self.makeToken = makeToken
        token = Mutex(makeToken())
    }

    /// Where answers come at present.
    package var answersQueue: ShortString? { answers(token.withLock { $0 })?.name }

    /// To be told what the link tells, before the link connects again.
    package func note(_ events: [LinkEvent]) {
        let isLost = events.contains { if case .disconnected = $0 { true } else { false } }
        if isLost { token.withLock { $0 = makeToken() } }
    }

    private func answers(_ token: String) -> OwnQueue? {
        topology.ownQueue(component: "scheduler", token: "\(token).answers", takesReplies: true)
    }

    package func consumer() -> [ChannelPlan] {
        let token = token.withLock { $0 }
        let events = topology.ownQueue(
            component: "scheduler", token: "\(token).events",
            bindings: topology.bindings(to: EventType.timing.filter { $0 != .windowOpened }))
        let ticks = topology.ownQueue(
            component: "scheduler", token: "\(token).ticks",
            bindings: [OwnQueue.Binding(exchange: topology.ticks)],
            arguments: ["x-message-ttl": .int32(60_000), "x-max-length": .int32(10_000)])
        let windows = topology.ownQueue(
            component: "scheduler", token: "\(token).windows",
            bindings: topology.bindings(to: [.windowOpened]))
        func listen(_ queue: OwnQueue?, _ part: Topology.Part, startsOpen: Bool = true) -> ChannelPlan {
            ChannelPlan(
                declare: topology.declarations(mode, parts: [part]) + (queue?.declarations ?? []),
                prefetch: 1_000,
                consumers: queue.map { [ConsumerPlan(queue: $0.name, tag: "scheduler", noAck: true)] } ?? [],
                startsOpen: startsOpen)
        }
        // Bound again each time: whoever makes an exchange anew before it is missed here does not know of these queues.
        let bindings = [events, ticks, answers(token)].flatMap { $0?.declarations ?? [] }.filter {
            if case .bindQueue = $0.declaration { true } else { false }
        }
        return [
            listen(events, .events), listen(ticks, .ticks), listen(answers(token), .replies),
            ChannelPlan(
                declare: topology.declarations(.passive, parts: [.events, .ticks, .replies]) + bindings),
            listen(windows, .events, startsOpen: false),
        ]
    }

    /// Ticks and questions need no confirm: what is lost is fired or asked again.
    package var publisher: [ChannelPlan] {
        [ChannelPlan(declare: topology.declarations(mode, parts: [.ticks, .queries]))]
    }

    static let startGate = StartGate(
        expecting: Set(SchedulerChannel.all.map { StartGate.Part(link: "consumer", channel: $0) })
            .union([StartGate.Part(link: "publisher", channel: 0)]),
        optional: Set(
            [SchedulerChannel.watch, SchedulerChannel.windows].map {
                StartGate.Part(link: "consumer", channel: $0)
            }))
}
