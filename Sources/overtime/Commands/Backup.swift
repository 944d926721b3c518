import Contract
import Glibc
import RoomCore
import Service
import Store
import Worker

extension ProgramCommand {
    static let backup = ProgramCommand(
        name: "backup", summary: "copy the store to a file, while the worker runs or not",
        usage: "FILE [OPTIONS]",
        details: """
            Makes a copy of the whole store that stands alone. A running worker makes it itself between its batches, so FILE is
            written by the worker's user, on the worker's machine; without one the file is copied directly. The copy is
            checked and durable before it gets its name, and holds everything that was committed up to the instant that is
            printed. It must be run by the worker's user or root.

            Exits with 0 where the backup is there, 1 where it was refused, 3 where it was not made in time: the worker then
            gives it up, unless it was about to finish it.
            """,
        options: [
            Option("force", nil, "exchange a file that is there already"),
            Option(
                "timeout", "DURATION", "how long to wait in all; a bare number means seconds (default 10m)"),
        ]
    ) { options throws(UsageError) in
        let target = try StoreWork.file(options, of: "backup")
        let deadline = MonotonicClock.milliseconds() + (try timeout(options, otherwise: 600_000))
        guard let store = StoreWork.store(options) else { return .configuration }
        let begun = MonotonicClock.milliseconds()
        while true {
            let left = max(1, deadline - MonotonicClock.milliseconds())
            switch ControlClient.backUp(
                store: store, to: target, replaces: options.has("force"), milliseconds: left)
            {
            case .outcome(.done(let bytes, let takenAt)):
                StoreWork.tell(
                    target, bytes: bytes, takenAt: takenAt,
                    milliseconds: MonotonicClock.milliseconds() - begun)
                return .ok
            case .outcome(.refused(let reason)):
                Output.error(reason)
                return .refused
            case .notAllowed(let reason):
                Output.error("the worker of \(store) cannot be asked (\(reason)): run this as its user")
                return .refused
            case .noAnswer:
                Output.error("the worker did not make the backup in time, or ended: give a longer --timeout")
                return .noReply
            case .nobody: break
            }
            let takenAt = SystemClock().nowMilliseconds()
            do throws(BackupError) {
                let bytes = try OfflineStore.backUp(
                    store: store, to: target, replaces: options.has("force"),
                    startedAt: Instant(milliseconds: takenAt))
                StoreWork.tell(
                    target, bytes: bytes, takenAt: takenAt,
                    milliseconds: MonotonicClock.milliseconds() - begun)
                return .ok
            } catch {
                // A worker that starts or ends owns the file and does not listen: it is asked again.
                guard case .store(.heldByAnother) = error, MonotonicClock.milliseconds() < deadline else {
                    Output.error(error.description)
                    if case .store(.heldByAnother) = error { return .noReply }
                    return .refused
                }
            }
            _ = Mailbox<Never>().take(timeoutMilliseconds: 200)
        }
    }

    static let restore = ProgramCommand(
        name: "restore", summary: "put a backup in the store's place, while no worker runs",
        usage: "FILE [OPTIONS]",
        details: """
            Checks a backup and makes it the store. Refuses while a worker owns the store, and where there is a store already;
            with --force that one is put aside, under a name that is printed.

            Every room's sequence is advanced by 1,000,000, so that no subscriber takes a new event for one that it has seen;
            what happened after the backup is forgotten. Events that wait in the backup's outbox are published when the
            worker starts: they are byte for byte those that were published already, or should have been.
            """,
        options: [Option("force", nil, "put an existing store aside")]
    ) { options throws(UsageError) in
        let source = try StoreWork.file(options, of: "restore")
        guard let store = StoreWork.store(options) else { return .configuration }
        let now = Instant(milliseconds: SystemClock().nowMilliseconds())
        let stamp = TimeText.text(now).prefix(19).filter { $0 != "-" && $0 != ":" }
        do throws(BackupError) {
            let restore = try Restore(store: store, from: source, asideEnding: "before-\(stamp)Z")
            StoreWork.tell(try restore.run(replaces: options.has("force"), startedAt: now), store)
            return .ok
        } catch {
            Output.error(error.description)
            return .refused
        }
    }
}

/// What both commands need.
private enum StoreWork {
    /// The argument, made absolute: the worker may run in another directory.
    static func file(_ options: Options, of command: String) throws(UsageError) -> String {
        guard let path = options.arguments.first, !path.isEmpty else {
            throw UsageError("\(command) needs a FILE")
        }
        guard options.arguments.count == 1 else {
            throw UsageError("unexpected argument \(options.arguments[1])")
        }
        if path.hasPrefix("/") { return path }
        guard let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return String(cString: folder) + "/" + path
    }

    static func store(_ options: Options) -> String? {
        guard case .sqlite(let path) = Composition.load(options).configuration.store else {
            Output.error("the store is on PostgreSQL: back it up and restore it with pg_dump and pg_restore")
            return nil
        }
        return realpath(path, nil).map { found in
            defer { free(found) }
            return String(cString: found)
        } ?? path
    }

    static func tell(_ path: String, bytes: Int64, takenAt: Int64, milliseconds: Int64) {
        let instant = TimeText.text(Instant(milliseconds: takenAt))
        Output.line(
            "\(path): \(bytes) bytes, everything up to \(instant), in \(HumanTime.span(TimeSpan(milliseconds: milliseconds)))"
        )
    }

    static func tell(_ result: Restore.Result, _ store: String) {
        Output.line("\(store): restored, the sequences of \(result.rooms) rooms advanced by \(Restore.jump)")
        if result.keptRooms > 0 {
            Output.line(
                "of \(result.keptRooms) rooms that only the replaced store knew the sequence was kept")
        }
        if result.outbox > 0 {
            Output.line(
                "\(result.outbox) events wait in the outbox: the worker publishes them when it starts")
        }
        if let aside = result.aside { Output.line("the replaced store is \(aside)") }
        if !result.comparedWithOld {
            Output.error(
                "the replaced store cannot be read: rooms that only it knew begin again at sequence 1")
        }
    }
}
