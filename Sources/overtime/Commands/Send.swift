import AMQP
import Contract
import OvertimeClient
import RoomCore
import Service

extension ProgramCommand {
    static let send = ProgramCommand(
        name: "send", summary: "publish a command and wait for its reply",
        usage: "COMMAND --room ROOM [OPTIONS]",
        details: """
            COMMAND is one of open, join, leave, extend, destroy, status. Publishes it and prints the reply; exits with 0 where it
            was carried out, 1 where it was refused, 3 where no reply came in time. Every command carries an id, so that
            sending it again with the same --id changes nothing and prints the same answer.

            Durations are strings with units such as 90s, 1h30m or 250ms; a bare number means minutes.
            """,
        options: [
            Option("room", "ROOM", "the room"),
            Option("user", "USER", "who acts"),
            Option("role", "ROLE", "join: moderator, participant or viewer"),
            Option("duration", "DURATION", "open: the planned length of a session"),
            Option("moderators", "A,B", "open: who is a moderator"),
            Option("policy", "JSON", "open: the policy, such as '{\"windows\":[\"2m\",\"1m\"]}'"),
            Option("by", "DURATION", "extend: how much time to ask for"),
            Option("minutes", "N", "extend: the same in minutes"),
            Option("id", "KEY", "the idempotency key (default: a new one)"),
            Option("no-wait", nil, "end when the broker has the command"),
            .timeout, .json,
        ]
    ) { options throws(UsageError) in
        let command = try CommandOptions.command(options)
        let timeout = Duration.milliseconds(try timeout(options))
        let waits = !options.has("no-wait")
        let answer = Composition.load(options).asking("send") { overtime async throws(OvertimeError) in
            try await overtime.send(command, waitsForReply: waits, timeout: timeout)
        }
        switch answer {
        case .failure(let failure): return report(failure)
        case .success(let body):
            guard waits else { return .ok }
            guard let reply = ReplyDecoder.decode(body) else {
                Output.error("the reply cannot be read: is the worker of this version?")
                return .noReply
            }
            if options.has("json") { Output.line(body) } else { Output.line(ReplyText.line(reply, command)) }
            return reply.ok ? .ok : .refused
        }
    }

    /// Says why there is no answer, and how the program ends.
    static func report(_ failure: OvertimeError) -> ProcessExit {
        Output.error(failure.description)
        switch failure {
        case .brokerRefuses, .resources, .malformed: return .configuration
        case .refused: return .refused
        case .unreachable, .noWorker, .overloaded, .noReply, .cancelled, .closed, .unreadable: return .noReply
        }
    }
}

/// From options to a command, checked by the decoder that the worker uses.
private enum CommandOptions {
    static func command(_ options: Options) throws(UsageError) -> Command {
        guard let word = options.arguments.first, options.arguments.count == 1 else {
            throw UsageError(
                options.arguments.isEmpty
                    ? "send needs a command: open, join, leave, extend, destroy or status"
                    : "unexpected argument \(options.arguments[1])")
        }
        guard let kind = CommandKind(rawValue: word) else {
            let known = CommandKind.allCases.map(\.rawValue)
            throw UsageError("unknown command \(word)\(Suggestion.text(for: word, among: known))")
        }
        guard let room = options["room"] else { throw UsageError("send needs --room ROOM") }
        let command = Command(
            room: RoomID(room), user: options["user"].map { UserID($0) },
            id: CommandID(options["id"] ?? RandomToken.make()), action: try action(kind, options))
        try refuseForeign(options, kind)
        switch CommandDecoder.decode(body: CommandEncoder.encode(command), properties: Properties()) {
        case .success(let checked): return checked
        case .failure(let invalid): throw UsageError(invalid.detail)
        }
    }

    private static func action(_ kind: CommandKind, _ options: Options) throws(UsageError) -> Command.Action {
        switch kind {
        case .open:
            return .open(
                OpenRequest(
                    duration: try span("duration", options),
                    moderators: options["moderators"].map(users), policy: try policy(options)))
        case .join:
            guard let word = options["role"] else { return .join(role: nil) }
            guard let role = Role(rawValue: word) else {
                throw UsageError("--role \(word) is none: moderator, participant or viewer would be right")
            }
            return .join(role: role)
        case .leave: return .leave
        case .extend:
            guard !options.has("by") || !options.has("minutes") else {
                throw UsageError("--by and --minutes say the same: give one of them")
            }
            let by = try span("by", options)
            let minutes = try span("minutes", options)
            return .extend(by: by ?? minutes)
        case .destroy: return .destroy
        case .status: return .status
        }
    }

    private static func users(_ list: String) -> [UserID] {
        list.split(separator: ",").map { UserID(String($0)) }
    }

    private static func span(_ name: String, _ options: Options) throws(UsageError) -> TimeSpan? {
        guard let text = options[name] else { return nil }
        switch Contract.DurationText.span(option: text) {
        case .success(let span): return span
        case .failure(let problem): throw UsageError("--\(name) \(text) \(problem.detail)")
        }
    }

    /// The policy as the worker would read it.
    private static func policy(_ options: Options) throws(UsageError) -> PolicyRequest? {
        guard let text = options["policy"] else { return nil }
        switch CommandDecoder.decodePolicy(Array(text.utf8)) {
        case .success(let policy): return policy
        case .failure(let invalid): throw UsageError("--policy: \(invalid.detail)")
        }
    }

    /// An option that belongs to another command would be dropped in silence.
    private static func refuseForeign(_ options: Options, _ kind: CommandKind) throws(UsageError) {
        let owners: [(String, CommandKind)] = [
            ("role", .join), ("duration", .open), ("moderators", .open), ("policy", .open), ("by", .extend),
            ("minutes", .extend),
        ]
        for (name, owner) in owners where options.has(name) && owner != kind {
            throw UsageError("--\(name) belongs to \(owner.rawValue), not to \(kind.rawValue)")
        }
    }
}
