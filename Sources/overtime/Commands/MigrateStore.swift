import Contract
import Glibc
import RoomCore
import Service
import Store

extension ProgramCommand {
    static let migrateStore = ProgramCommand(
        name: "migrate-store", summary: "move the store from SQLite to PostgreSQL, while no worker runs",
        usage: "sqlite:PATH [postgresql://…] [OPTIONS]",
        details: """
            Moves everything of a SQLite store into an empty PostgreSQL database: rooms, participants, answers and waiting events,
            each as it was. Where no database is named it is the store of the configuration in force (OVERTIME_STORE,
            OVERTIME_STORE_FILE), so that its password need not stand on the command line, where others can read it.

            Refuses while a worker uses either. Copies in pages, each at once: what was ended goes on where it was when the same
            command is given again. Then both stores are read and compared, row by row and column by column. Only then
            the SQLite store is marked as moved, so that no worker starts on it any more, and the database lets workers in.
            Nothing else of the file is changed.

            --back lets workers use the SQLite store again, as long as nothing has changed in the database since.

            Exits with 0 where all is moved, with 1 where it is not, and says why.
            """,
        options: [Option("back", nil, "take a move back"), .json]
    ) { options throws(UsageError) in
        let path = try MigrateStore.source(options)
        guard let url = try MigrateStore.target(options) else { return .configuration }
        let now = Instant(milliseconds: SystemClock().nowMilliseconds())
        let at = TimeText.text(now).prefix(19) + "Z"
        let move = StoreMove(from: path, to: url.reveal(), startedAt: now, at: String(at))
        var output = MigrateStore(source: path, target: url, asJSON: options.has("json"))
        do throws(MoveError) {
            if options.has("back") {
                try move.takeBack { output.tell($0) }
                output.tellBack()
            } else {
                output.tell(try move.run { output.tell($0) })
            }
            return .ok
        } catch {
            Output.error(error.description)
            return .refused
        }
    }
}

/// What the command reads and says.
private struct MigrateStore {
    private let source: String
    private let target: String
    private let asJSON: Bool
    private let begun = MonotonicClock.milliseconds()
    private var last = MonotonicClock.milliseconds()

    init(source: String, target: Secret, asJSON: Bool) {
        self.source = source
        self.target = target.withoutCredentials
        self.asJSON = asJSON
    }

    static func source(_ options: Options) throws(UsageError) -> String {
        guard let text = options.arguments.first else {
            throw UsageError("migrate-store needs the SQLite store: sqlite:PATH")
        }
        guard text.hasPrefix("sqlite:"), text.utf8.count > 7 else {
            throw UsageError("the store to move is not sqlite:PATH")
        }
        return String(text.dropFirst(7))
    }

    /// Nil where the configuration names none; that was said then.
    static func target(_ options: Options) throws(UsageError) -> Secret? {
        let configured = Composition.load(options).configuration.store
        switch options.arguments.count {
        case 1:
            if case .postgresql(let url) = configured { return url }
            Output.error("where to is not said: set store (OVERTIME_STORE) to postgresql://…, or name it")
            return nil
        case 2:
            // It may hold a password, so it is not repeated.
            guard ["postgresql://", "postgres://"].contains(where: options.arguments[1].hasPrefix) else {
                throw UsageError(
                    "where to move the store is not postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
            }
            return Secret(options.arguments[1])
        default:
            throw UsageError("unexpected argument behind the two stores")
        }
    }

    // MARK: Saying

    mutating func tell(_ step: StoreMove.Step) {
        let now = MonotonicClock.milliseconds()
        let took = now - last
        last = now
        if asJSON {
            return Output.line(
                #"{"step":"\#(step.kind.rawValue)","table":"\#(step.table)","rows":\#(step.rows),"milliseconds":\#(took)}"#
            )
        }
        let what = step.kind == .compared ? "equal on both sides" : step.wentOn ? "more copied" : "copied"
        Output.line(
            "\(EventText.pad(step.table, 14))\(EventText.pad("\(step.rows)", 10)) \(what), in \(Self.span(took))"
        )
    }

    func tell(_ outcome: StoreMove.Outcome) {
        let took = MonotonicClock.milliseconds() - begun
        switch outcome {
        case .moved(let rooms):
            if asJSON { return Output.line(#"{"step":"moved","rooms":\#(rooms),"milliseconds":\#(took)}"#) }
            Output.line("sqlite:\(source): \(rooms) rooms moved to \(target), in \(Self.span(took))")
        case .movedBefore(let at):
            if asJSON { return Output.line(#"{"step":"moved before","at":"\#(at)"}"#) }
            Output.line("sqlite:\(source): moved to \(target) on \(at), there is nothing to do")
        }
    }

    func tellBack() {
        if asJSON { return Output.line(#"{"step":"taken back"}"#) }
        Output.line("sqlite:\(source): taken back; workers may use it, and are refused by \(target)")
    }

    private static func span(_ milliseconds: Int64) -> String {
        HumanTime.span(TimeSpan(milliseconds: milliseconds))
    }
}
