internal import RoomCore

/// The `data` of an event: the contract's table, row by row.
enum EventData {
    static func write(_ event: Event, to writer: inout JSONWriter) {
        writer.field("room", event.room)
        writer.field("session", event.session)
        writer.field("audience", audience(event.kind))
        switch event.kind {
        case .roomOpened(let definition): write(definition, to: &writer)
        case .sessionStarted(let startedAt, let endsAt, let duration, let nextDueAt):
            writer.field("startedAt", startedAt)
            writer.field("endsAt", endsAt)
            writer.field("duration", minutes: duration)
            writer.field("nextDueAt", nextDueAt)
        case .participantJoined(let user, let role, let connected),
            .participantLeft(let user, let role, let connected),
            .participantRoleChanged(let user, let role, let connected):
            writer.field("user", user)
            writer.field("role", role.rawValue)
            writer.field("connected", connected)
        case .windowOpened(let notice): write(notice, to: &writer)
        case .sessionExtended(let notice): write(notice, to: &writer)
        case .destroyAcknowledged(let moderator): writer.field("by", moderator)
        case .sessionEnded(let notice): write(notice, to: &writer)
        }
    }

    /// Whom a gateway should tell.
    private static func audience(_ kind: Event.Kind) -> String {
        if case .destroyAcknowledged(let moderator) = kind { "user:\(moderator.text)" } else { "room" }
    }

    private static func write(_ definition: Definition, to writer: inout JSONWriter) {
        let policy = definition.policy
        writer.field("duration", minutes: definition.duration)
        writer.field("policy") { writer in
            writer.field("windows", array: policy.windows) { $0.minutes($1) }
            writer.field("extension") { writer in
                writer.field("min", minutes: policy.extension.min)
                writer.field("max", minutes: policy.extension.max)
                writer.field("default", minutes: policy.extension.default)
            }
            writer.field("extenders", policy.extenders.rawValue)
            writer.field("maxExtensions", policy.maxExtensions)
            writer.field("maxTotal", minutes: policy.maxTotal)
            writer.field("clock", policy.clock.rawValue)
            writer.field("reopen", policy.reopen.rawValue)
        }
        if let moderators = definition.moderators {
            writer.field("moderators", array: moderators) { $0.string($1.text) }
        } else {
            writer.key("moderators")
            writer.null()
        }
    }

    private static func write(_ notice: WindowNotice, to writer: inout JSONWriter) {
        writer.field("timeLeft", minutes: notice.timeLeft)
        writer.field("window", notice.window)
        writer.field("final", notice.isFinal)
        writer.field("extendable", notice.isExtendable)
        writer.field("extensions", notice.extensions)
        writer.field("endsAt", notice.endsAt)
        writer.field("nextDueAt", notice.nextDueAt)
        writer.field("dueAt", notice.dueAt)
        writer.field("lateBy", seconds: notice.lateBy)
    }

    private static func write(_ notice: ExtensionNotice, to writer: inout JSONWriter) {
        writer.field("extendedTime", minutes: notice.granted)
        switch notice.by {
        case .user(let user): writer.field("by", user)
        case .operator(let name):
            writer.key("by")
            writer.null()
            writer.field("operator", name)
        }
        writer.field("previousEndsAt", notice.previousEndsAt)
        writer.field("endsAt", notice.endsAt)
        writer.field("nextDueAt", notice.nextDueAt)
        writer.field("extensions", notice.extensions)
    }

    private static func write(_ notice: EndNotice, to writer: inout JSONWriter) {
        writer.field("cause", notice.cause.rawValue)
        writer.field("by", notice.by)
        writer.field("startedAt", notice.startedAt)
        writer.field("endsAt", notice.endsAt)
        writer.field("endedAt", notice.endedAt)
        writer.field("lateBy", seconds: notice.lateBy)
        writer.field("extensions", notice.extensions)
        writer.field("participants", notice.participants)
    }
}
