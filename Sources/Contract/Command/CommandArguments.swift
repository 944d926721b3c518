internal import RoomCore

/// The arguments of each command, by type alone.
enum CommandArguments {
    static func action(_ fields: FieldReader, _ kind: CommandKind) throws(FieldProblem) -> Command.Action {
        switch kind {
        case .open: .open(try openRequest(fields))
        case .join: .join(role: try fields.word("role"))
        case .leave: .leave
        case .extend: .extend(by: try extensionSpan(fields))
        case .destroy: .destroy
        case .status: .status
        }
    }

    private static func openRequest(_ fields: FieldReader) throws(FieldProblem) -> OpenRequest {
        OpenRequest(
            duration: try fields.span("duration"), moderators: try fields.names("moderators"),
            policy: try policyRequest(fields.object("policy")))
    }

    static func policyRequest(_ fields: FieldReader?) throws(FieldProblem) -> PolicyRequest? {
        guard let fields else { return nil }
        try fields.refuseUnknown(
            besides: ["windows", "extension", "extenders", "maxExtensions", "maxTotal", "clock", "reopen"],
            of: "policy")
        return PolicyRequest(
            windows: try fields.spans("windows"),
            extension: try extensionRequest(fields.object("extension")),
            extenders: try fields.word("extenders"), maxExtensions: try fields.count("maxExtensions"),
            maxTotal: try fields.span("maxTotal"), clock: try fields.word("clock"),
            reopen: try fields.word("reopen"))
    }

    private static func extensionRequest(_ fields: FieldReader?) throws(FieldProblem) -> ExtensionRequest? {
        guard let fields else { return nil }
        try fields.refuseUnknown(besides: ["min", "max", "default"], of: "policy.extension")
        return ExtensionRequest(
            min: try fields.span("min"), max: try fields.span("max"), default: try fields.span("default"))
    }

    /// `by` or `minutes`, which mean the same and are therefore not given together.
    private static func extensionSpan(_ fields: FieldReader) throws(FieldProblem) -> TimeSpan? {
        let by = try fields.span("by")
        let minutes = try fields.minutes("minutes")
        guard by == nil || minutes == nil else {
            throw FieldProblem("by and minutes are both given: send one of them")
        }
        return by ?? minutes
    }
}
