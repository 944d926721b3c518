package import AMQP

/// Whether a command's `reply_to` may be answered. Otherwise anybody could have Overtime write into its own
/// queues: an answer sent to `overtime.commands` would come back as a command.
package enum ReplyTarget: Hashable, Sendable {
    /// Nobody asked for an answer.
    case none
    case allowed
    /// One of Overtime's own queues: an invalid command, dead-lettered and not answered.
    case forbidden

    package static func check(replyTo: ShortString?, prefix: String) -> ReplyTarget {
        guard let replyTo, !replyTo.isEmpty else { return .none }
        let rest = replyTo.bytes.dropFirst(prefix.utf8.count)
        guard replyTo.bytes.starts(with: prefix.utf8), rest.first == UInt8(ascii: ".") else {
            return .allowed
        }
        return rest.starts(with: ".own.".utf8) ? .allowed : .forbidden
    }

    /// The refusal that goes with `forbidden`, for the dead letter.
    package static func refusal(prefix: String) -> InvalidCommand {
        InvalidCommand(
            .invalidCommand,
            "reply_to names one of the queues of \(prefix).: use a queue of your own, or \(prefix).own.…")
    }
}
