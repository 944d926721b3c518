package import RoomCore

/// The one spelling of a command, by which a repeat is known: same command, room, user and arguments after
/// decoding, same bytes, and never otherwise. The key is not part of it.
///
/// Spans are whole milliseconds and an omitted field leaves no trace, so that it differs from its default.
/// The store keeps these bytes (or their hash): changing them makes every known key `id_reused`.
package enum CommandText {
    package static func canonical(_ command: Command) -> [UInt8] {
        JSONWriter.object(capacity: 128) { writer in
            writer.field("c", command.action.name.rawValue)
            writer.field("r", command.room)
            if let user = command.user { writer.field("u", user) }
            switch command.action {
            case .open(let request): write(request, to: &writer)
            case .join(let role):
                if let role { writer.field("role", role.rawValue) }
            case .extend(let by):
                if let by { writer.field("by", by.milliseconds) }
            case .leave, .destroy, .status: break
            }
        }
    }

    private static func write(_ request: OpenRequest, to writer: inout JSONWriter) {
        if let duration = request.duration { writer.field("duration", duration.milliseconds) }
        if let moderators = request.moderators {
            writer.field("moderators", array: moderators) { $0.string($1.text) }
        }
        guard let policy = request.policy else { return }
        writer.field("policy") { writer in
            if let windows = policy.windows {
                writer.field("windows", array: windows) { $0.integer($1.milliseconds) }
            }
            if let bounds = policy.extension {
                writer.field("extension") { writer in
                    if let min = bounds.min { writer.field("min", min.milliseconds) }
                    if let max = bounds.max { writer.field("max", max.milliseconds) }
                    if let most = bounds.default { writer.field("default", most.milliseconds) }
                }
            }
            if let extenders = policy.extenders { writer.field("extenders", extenders.rawValue) }
            if let most = policy.maxExtensions { writer.field("maxExtensions", most) }
            if let total = policy.maxTotal { writer.field("maxTotal", total.milliseconds) }
            if let clock = policy.clock { writer.field("clock", clock.rawValue) }
            if let reopen = policy.reopen { writer.field("reopen", reopen.rawValue) }
        }
    }
}
