package import RoomCore

/// A command as the body that a client sends. Decoding it gives the same command back, to the millisecond:
/// spans are written as strings, since minutes with four decimals would not do.
package enum CommandEncoder {
    package static func encode(_ command: Command) -> [UInt8] {
        JSONWriter.object { writer in
            writer.field("command", command.action.name.rawValue)
            writer.field("room", command.room)
            if let user = command.user { writer.field("user", user) }
            if let id = command.id { writer.field("id", id) }
            switch command.action {
            case .open(let request): write(request, to: &writer)
            case .join(let role):
                if let role { writer.field("role", role.rawValue) }
            case .extend(let by): writer.span("by", by)
            case .leave, .destroy, .status: break
            }
        }
    }

    private static func write(_ request: OpenRequest, to writer: inout JSONWriter) {
        writer.span("duration", request.duration)
        if let moderators = request.moderators {
            writer.field("moderators", array: moderators) { $0.string($1.text) }
        }
        guard let policy = request.policy else { return }
        writer.field("policy") { writer in
            if let windows = policy.windows {
                writer.field("windows", array: windows) { $0.string(DurationText.text($1)) }
            }
            if let bounds = policy.extension {
                writer.field("extension") { writer in
                    writer.span("min", bounds.min)
                    writer.span("max", bounds.max)
                    writer.span("default", bounds.default)
                }
            }
            if let extenders = policy.extenders { writer.field("extenders", extenders.rawValue) }
            if let most = policy.maxExtensions { writer.field("maxExtensions", most) }
            writer.span("maxTotal", policy.maxTotal)
            if let clock = policy.clock { writer.field("clock", clock.rawValue) }
            if let reopen = policy.reopen { writer.field("reopen", reopen.rawValue) }
        }
    }
}

extension JSONWriter {
    /// A span as a string with units; an absent one is left out.
    fileprivate mutating func span(_ name: StaticString, _ span: TimeSpan?) {
        if let span { field(name, DurationText.text(span)) }
    }
}
