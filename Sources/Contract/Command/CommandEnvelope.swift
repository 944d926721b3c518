internal import AMQP
internal import RoomCore

/// What all commands have in common, and where the AMQP properties stand in for a field.
enum CommandEnvelope {
    /// The field `command`, or the property `type` where the field is absent.
    static func kind(_ fields: FieldReader, _ properties: Properties) throws(FieldProblem) -> CommandKind {
        if let kind: CommandKind = try fields.word("command") { return kind }
        guard let type = properties.type, !type.isEmpty else {
            throw FieldProblem("command is missing: name one of \(names), or set the AMQP property type")
        }
        return try Words.word(
            type.string ?? type.description, called: "command (from the AMQP property type)")
    }

    /// Who acts. On `open` and `status` it must be well-formed but does not count.
    static func user(_ fields: FieldReader, _ kind: CommandKind) throws(FieldProblem) -> UserID? {
        let user: UserID? = try fields.name("user")
        switch kind {
        case .open, .status: return nil
        case .extend, .destroy: return user
        case .join, .leave:
            guard let user else {
                throw FieldProblem("user is missing: \(kind.rawValue) must say who acts")
            }
            return user
        }
    }

    /// The field `id`, or the property `message_id` where the field is absent. An empty property counts as
    /// absent, an empty field does not.
    static func id(_ fields: FieldReader, _ properties: Properties) throws(FieldProblem) -> CommandID? {
        if let text = try fields.text("id") { return try NameRule.key(text, called: "id") }
        guard let messageID = properties.messageID, !messageID.isEmpty else { return nil }
        let name = "message_id (the key where id is absent)"
        guard let text = messageID.string else { throw FieldProblem("\(name) must be valid UTF-8") }
        return try NameRule.key(text, called: name)
    }

    private static var names: String { CommandKind.allCases.map(\.rawValue).joined(separator: ", ") }
}

/// The parts of an invalid command that are valid by themselves, for the answer to name. Where the body says
/// nothing at all, the properties still may.
struct CommandEcho {
    let id: CommandID?
    let command: CommandKind?
    private let room: RoomID?

    init(parsed: Result<JSONValue, JSONProblem>, properties: Properties) {
        var fields = FieldReader([])
        if case .success(.object(let members)) = parsed { fields = FieldReader(members) }
        id = try? CommandEnvelope.id(fields, properties)
        command = try? CommandEnvelope.kind(fields, properties)
        room = try? fields.name("room")
    }

    func invalid(_ reason: InvalidCommand.Reason, _ detail: String) -> InvalidCommand {
        InvalidCommand(reason, detail, id: id, command: command, room: room)
    }
}
