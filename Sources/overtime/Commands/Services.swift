import Scheduler
import Service
import Worker

extension ProgramCommand {
    static let worker = ProgramCommand(
        name: "worker", summary: "consume commands, keep the rooms, publish the events", usage: "[OPTIONS]",
        details: """
            Decides the commands of all rooms, keeps them durably in its store and publishes their events. One worker owns a
            SQLite store, any number share one on PostgreSQL. It reconnects by itself; SIGTERM finishes what is in hand and ends
            with 0, a second one ends at once.
            """,
        options: []
    ) { options throws(UsageError) in
        try refuseArguments(options)
        Memory.keepFlat()
        Signals.block()
        let composition = Composition.load(options)
        return WorkerProcess(
            settings: composition.workerSettings, location: composition.storeLocation,
            connection: { composition.link($0) },
            declares: composition.configuration.amqp.declare, http: composition.configuration.http,
            log: composition.log("worker"),
            version: Version.current
        ).run()
    }

    static let scheduler = ProgramCommand(
        name: "scheduler", summary: "fire window notifications and ends at their instant", usage: "[OPTIONS]",
        details: """
            Fires the windows and the end of every session on time, by telling the worker to look. Keeps no state of its own:
            any number may run, and while none does only the notices wait.
            """,
        options: []
    ) { options throws(UsageError) in
        try refuseArguments(options)
        Memory.keepFlat()
        Signals.block()
        let composition = Composition.load(options)
        return SchedulerProcess(
            topology: composition.topology, connection: { composition.link($0) },
            declares: composition.configuration.amqp.declare, http: composition.configuration.http,
            log: composition.log("scheduler"),
            version: Version.current
        ).run()
    }

    static func refuseArguments(_ options: Options) throws(UsageError) {
        guard let first = options.arguments.first else { return }
        throw UsageError("unexpected argument \(first)")
    }

    /// `--timeout` in milliseconds; a bare number means seconds.
    static func timeout(_ options: Options, otherwise: Int64 = 10_000) throws(UsageError) -> Int64 {
        guard let text = options["timeout"] else { return otherwise }
        guard let milliseconds = DurationText.parse(text, bare: .seconds),
            (1...366 * 86_400_000).contains(milliseconds)
        else {
            throw UsageError(
                "--timeout \(text) is no duration up to 366 days: 10, 10s or 1m30s would be right")
        }
        return milliseconds
    }
}
