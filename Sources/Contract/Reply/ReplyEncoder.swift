package import RoomCore

/// The answer to a command (contract, section 3). Its bytes are stored with the command's key and sent again
/// for each repeat.
package enum ReplyEncoder {
    package static func encode(decision: Decision, command: Command) -> [UInt8] {
        let transition = decision.transition
        let room = transition.room
        return JSONWriter.object { writer in
            writer.field("id", command.id)
            writer.field("command", command.action.name.rawValue)
            writer.field("room", command.room)
            write(decision.outcome, to: &writer)
            write(room.snapshot(at: transition.judgedAt), to: &writer)
            // A room without a number was never opened: there is nothing to know.
            writer.field("sequence", room.sequence > 0 ? room.sequence : nil)
            writer.field("serverTime", transition.judgedAt)
        }
    }

    package static func encode(invalid: InvalidCommand, serverTime: Instant) -> [UInt8] {
        JSONWriter.object { writer in
            writer.field("id", invalid.id)
            writer.field("command", invalid.command?.rawValue)
            writer.field("room", invalid.room)
            write(Refusal(.invalidCommand, invalid.detail), to: &writer)
            write(nil as Snapshot?, to: &writer)
            writer.field("sequence", nil as Int64?)
            writer.field("serverTime", serverTime)
        }
    }

    private static func write(_ outcome: Outcome, to writer: inout JSONWriter) {
        if case .refused(let refusal) = outcome { return write(refusal, to: &writer) }
        writer.field("ok", true)
        writer.field("result") { writer in
            switch outcome {
            case .joined(let role): writer.field("role", role.rawValue)
            case .extended(let span, let endsAt, let extensions):
                writer.field("extendedTime", minutes: span)
                writer.field("endsAt", endsAt)
                writer.field("extensions", extensions)
            case .done, .refused: break
            }
        }
    }

    /// Shared with the answers to queries.
    static func write(_ refusal: Refusal, to writer: inout JSONWriter) {
        writer.field("ok", false)
        writer.field("error") { writer in
            writer.field("code", refusal.reason.code)
            writer.field("reason", refusal.reason.rawValue)
            writer.field("message", PrintableText.bounded(refusal.message))
            if refusal.reason == .alreadyExtended { writer.field("extendedBy", user(refusal.extendedBy)) }
            if refusal.reason == .alreadyExtended || refusal.reason == .windowNotOpen {
                writer.field("opensAt", refusal.opensAt)
            }
        }
    }

    private static func user(_ extender: Extender?) -> UserID? {
        if case .user(let user) = extender { user } else { nil }
    }

    private static func write(_ session: Snapshot?, to writer: inout JSONWriter) {
        guard let session else {
            writer.key("session")
            return writer.null()
        }
        writer.field("session") { writer in
            writer.field("number", session.number)
            writer.field("state", session.state.rawValue)
            writer.field("startedAt", session.startedAt)
            writer.field("endsAt", session.endsAt)
            writer.field("timeLeft", minutes: session.timeLeft)
            writer.field("window", session.window)
            writer.field("nextWindowAt", session.nextWindowAt)
            writer.field("extensions", session.extensions)
            writer.field("connected", session.connected)
            if session.state == .ended {
                writer.field("endedAt", session.endedAt)
                writer.field("cause", session.cause?.rawValue)
            }
        }
    }
}
