package import AMQP
package import RoomCore

/// From a delivery to a command: contract, section 2, in its order.
///
/// Properties are judged before the body, the envelope (`command`, unknown fields, `room`, `user`, `id`)
/// before the arguments, and the first problem is the one that is told. Whether valid values fit together is
/// not asked here: that is `Policy.resolve`, whose refusal is an answer like any other.
package enum CommandDecoder {
    package static func decode(body: [UInt8], properties: Properties) -> Result<Command, InvalidCommand> {
        let parsed = StrictJSON.parse(body)
        do {
            try checkFormat(properties)
            return .success(try command(in: parsed, properties: properties))
        } catch {
            let echo = CommandEcho(parsed: parsed, properties: properties)
            return .failure(echo.invalid(error.reason, error.detail))
        }
    }

    /// The `policy` of an `open` by itself, as a client's option gives it.
    package static func decodePolicy(_ json: [UInt8]) -> Result<PolicyRequest, InvalidCommand> {
        switch StrictJSON.parse(json) {
        case .failure(let problem): return .failure(InvalidCommand(.notJSON, problem.detail))
        case .success(let value):
            do {
                let fields = try FieldReader([JSONMember("policy", value)]).object("policy")
                return .success(try CommandArguments.policyRequest(fields) ?? PolicyRequest())
            } catch {
                return .failure(InvalidCommand(error.reason, error.detail))
            }
        }
    }

    private static func command(
        in parsed: Result<JSONValue, JSONProblem>, properties: Properties
    ) throws(FieldProblem) -> Command {
        switch parsed {
        case .failure(let problem):
            throw FieldProblem(problem.detail, reason: problem.kind == .tooLarge ? .tooLarge : .notJSON)
        case .success(.object(let members)):
            return try command(FieldReader(members), properties: properties)
        case .success(let value):
            throw FieldProblem(
                "the body must be one JSON object, not \(value.typeName)", reason: .notAnObject)
        }
    }

    private static let json: ShortString = "application/json"

    private static func checkFormat(_ properties: Properties) throws(FieldProblem) {
        if let encoding = properties.contentEncoding, !encoding.isEmpty {
            throw FieldProblem(
                "content_encoding \(PrintableText.quoted(encoding.description)) is not supported: send plain JSON without one"
            )
        }
        guard let type = properties.contentType, !type.isEmpty, type != json else { return }
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let media = type.bytes.prefix { $0 != UInt8(ascii: ";") }.drop(while: isSpace).reversed()
            .drop(while: isSpace).reversed()
        let lowercased = media.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 + 0x20 : $0 }
        guard lowercased.elementsEqual(json.bytes) else {
            throw FieldProblem(
                "content_type \(PrintableText.quoted(type.description)) is not supported: send application/json or none"
            )
        }
    }

    private static func command(
        _ fields: FieldReader, properties: Properties
    ) throws(FieldProblem) -> Command {
        let kind = try CommandEnvelope.kind(fields, properties)
        try fields.refuseUnknown(
            besides: CommandFields.known(kind), of: kind.rawValue,
            elsewhere: { CommandFields.owner($0)?.rawValue })
        guard let room: RoomID = try fields.name("room") else {
            throw FieldProblem("room is missing: name the room")
        }
        let user = try CommandEnvelope.user(fields, kind)
        let id = try CommandEnvelope.id(fields, properties)
        return Command(room: room, user: user, id: id, action: try CommandArguments.action(fields, kind))
    }
}

/// The fields that a command may have.
enum CommandFields {
    static func known(_ kind: CommandKind) -> [String] { all[kind] ?? common }

    /// The command whose field this is.
    static func owner(_ field: String) -> CommandKind? {
        CommandKind.allCases.first { own($0).contains { $0.utf8.elementsEqual(field.utf8) } }
    }

    private static let common = ["command", "room", "user", "id"]
    private static let all = Dictionary(
        uniqueKeysWithValues: CommandKind.allCases.map { ($0, common + own($0)) })

    private static func own(_ kind: CommandKind) -> [String] {
        switch kind {
        case .open: ["duration", "moderators", "policy"]
        case .join: ["role"]
        case .extend: ["by", "minutes"]
        case .leave, .destroy, .status: []
        }
    }
}
