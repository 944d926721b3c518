import AMQP
import Contract
import RoomCore
import Store

/// What a client wants: a command, or something that only looks like one. It may be published several times.
struct Intent {
    let room: RoomID
    let body: [UInt8]
    /// Without correlation and reply address, which each publish has of its own.
    var properties: Properties
    /// Nil where it is no valid command.
    let command: Command?
    let actor: Actor
    var isOversized = false
    /// An address that must not be answered stands in place of the client's own.
    var hasForbiddenReply = false

    var key: CommandKey? {
        command.flatMap { command in command.id.map { CommandKey(room: command.room, id: $0) } }
    }
}

/// One publish of an intent, with what its client was told.
final class Publish {
    enum Outcome { case pending, confirmed, refused, unknown }

    let number: Int
    let intent: Intent
    let wantsReply: Bool
    var outcome = Outcome.pending
    /// It went with a queue that somebody deleted.
    var isLost = false

    init(number: Int, intent: Intent, wantsReply: Bool) {
        self.number = number
        self.intent = intent
        self.wantsReply = wantsReply
    }

    var correlation: String { "p\(number)" }
}
