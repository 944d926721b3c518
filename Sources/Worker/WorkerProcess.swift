package import AMQP
import Contract
import Glibc
import HTTP
import Metrics
import RoomCore
package import Service
import Store

/// The worker as a process: two connections, one thread of work, one store.
package struct WorkerProcess: Sendable {
    package let settings: WorkerSettings
    package let location: StoreLocation
    package let connection: @Sendable (_ name: String) -> LinkConfiguration
    /// False where shared objects are only checked for existence.
    package let declares: Bool
    /// Where metrics and health are served; nil for nowhere.
    package let http: Configuration.HTTPAddress?
    package let log: Log
    package let version: String

    package init(
        settings: WorkerSettings, location: StoreLocation,
        connection: @escaping @Sendable (String) -> LinkConfiguration,
        declares: Bool, http: Configuration.HTTPAddress?, log: Log, version: String
    ) {
        self.settings = settings
        self.location = location
        self.connection = connection
        self.declares = declares
        self.http = http
        self.log = log
        self.version = version
    }

    /// Tries before the first start that are given to what is wrong for good, and the milliseconds between them.
    private static let tries = 5
    private static let tryInterval: Int64 = 5_000

    /// Runs until a stop signal, or until something is wrong for good.
    package func run() -> ProcessExit {
        let mailbox = Mailbox<Worker.Input>()
        guard Signals.stopService(log: log, { mailbox.put(.stop) }) else { return .configuration }
        let identity = RunRow(
            id: RandomToken.make(), pid: getpid(), host: HostName.current,
            startedAt: Instant(milliseconds: SystemClock().nowMilliseconds()), place: ProcessPlace.current)
        log.info(
            "starting",
            ["version": version, "run": identity.id, "pid": identity.pid, "store": location.name])
        let server: StatusServer?
        do throws(ListenError) {
            server = try StatusServer.start(http, source: .worker, version: version, log: log)
        } catch {
            return .configuration
        }
        defer { server?.stop() }
        guard let (store, crashed) = openStore(mailbox, identity, board: server?.board) else {
            return mailbox.isClosed ? .ok : .configuration
        }
        defer { store.close() }
        if !crashed.isEmpty {
            log.warning("a worker before this one did not end cleanly", ["runs": crashed.count])
        }
        let control = (store as? SQLiteStore).flatMap { listen(beside: $0.path, mailbox) }
        defer { control?.stop() }
        return serve(
            store, identity: identity, crashed: crashed, mailbox: mailbox, board: server?.board)
    }

    /// Backups can wait, rooms cannot: without its socket the worker runs all the same.
    private func listen(beside store: String, _ mailbox: Mailbox<Worker.Input>) -> ControlSocket? {
        do throws(ControlSocket.Failure) {
            return try ControlSocket(store: store) { mailbox.put(.backup($0)) }
        } catch {
            log.warning(
                "no backups while this worker runs: its socket cannot be made", ["error": error.reason])
            return nil
        }
    }

    /// Opens the store and begins the run: waits for what can heal by itself (a full disk too), gives five tries to what
    /// cannot. Nil to end the process; the mailbox is closed then if it was asked to.
    private func openStore(
        _ mailbox: Mailbox<Worker.Input>, _ identity: RunRow, board: StatusBoard?
    ) -> (store: any RoomStore, crashed: [String])? {
        var failures = 0
        var said: StoreError?
        while true {
            board?.turned(at: MonotonicClock.milliseconds()) {
                StatusBoard.Status(notReady: ["store: it is not open yet"])
            }
            do throws(StoreError) {
                let store = try location.open(for: identity) { [log] defect in
                    log.error("a room cannot be read", ["error": defect.description])
                }
                let crashed = try store.beginRun(identity)
                try Worker.admit(identity, shards: settings.topology.shards, to: store)
                return (store, crashed)
            } catch {
                if !error.isTransient { failures += 1 }
                let givesUp = failures >= Self.tries
                if givesUp {
                    log.error("giving up: the store cannot be opened", ["error": error.description])
                } else if said != error {
                    log.warning("the store cannot be opened: trying again", ["error": error.description])
                }
                said = error
                if givesUp { return nil }
            }
            let inputs = mailbox.take(timeoutMilliseconds: Self.tryInterval)
            if inputs.contains(where: { if case .stop = $0 { true } else { false } }) {
                mailbox.close()
                return nil
            }
        }
    }

    private func serve(
        _ store: any RoomStore, identity: RunRow, crashed: [String], mailbox: Mailbox<Worker.Input>,
        board: StatusBoard?
    ) -> ProcessExit {
        let plans = WorkerPlans(settings: settings, mode: declares ? .active : .passive)
        let consumer = Link(
            configuration: connection("overtime worker (consumer)"), channels: { plans.consumer },
            observer: { events in mailbox.put(events.lazy.map(Worker.Input.consumer)) })
        let publisher = Link(
            configuration: connection("overtime worker (publisher)"), channels: { plans.publisher },
            observer: { events in mailbox.put(events.lazy.map(Worker.Input.publisher)) })
        let worker = Worker(
            store: store, consumer: consumer, publisher: publisher, clock: SystemClock(), log: log,
            settings: settings,
            identity: identity, crashedRuns: crashed, stopwatch: { MonotonicClock.nanoseconds() })
        var gate = plans.startGate
        consumer.start()
        publisher.start()
        defer {
            // Both at once: beside a broker that answers nothing each takes its two seconds.
            consumer.requestStop()
            publisher.requestStop()
            consumer.stop()
            publisher.stop()
        }
        var wait: Int64 = 0
        var inputs: [Worker.Input] = []
        while !worker.isStopped {
            mailbox.take(into: &inputs, timeoutMilliseconds: wait)
            if !gate.hasStarted, let error = note(inputs, in: &gate) {
                return gaveUp(error)
            }
            let uptime = MonotonicClock.milliseconds()
            worker.handle(inputs, at: uptime)
            wait = worker.run(at: uptime)
            board?.turned(at: uptime) { worker.status }
            if let error = worker.fatal {
                log.error("giving up: the store needs a person", ["error": error.description])
                return .configuration
            }
        }
        return .ok
    }

    private func gaveUp(_ error: AMQPError) -> ProcessExit {
        if error.kind == .resources {
            log.error("giving up: the system has no room for this worker", ["error": error.description])
            return .resources
        }
        log.error("giving up: the broker refuses what this worker needs", ["error": error.description])
        return .configuration
    }

    private func note(_ inputs: [Worker.Input], in gate: inout StartGate) -> AMQPError? {
        for input in inputs {
            switch input {
            case .consumer(let event): if let error = gate.note(event, of: "consumer") { return error }
            case .publisher(let event): if let error = gate.note(event, of: "publisher") { return error }
            case .backup, .stop: break
            }
        }
        return nil
    }
}
