internal import Synchronization

/// What callers ask of a link.
enum LinkCommand: Sendable {
    case publish([Publication], channel: Int, generation: UInt64)
    case acknowledge([DeliveryTag], channel: Int)
    case reject(DeliveryTag, requeue: Bool, channel: Int)
    case open(channel: Int)
    case close(channel: Int)
    case reconnect
}

/// The commands not yet taken by the I/O thread, in their order.
///
/// It has no limit of its own. Callers bound it: an acknowledgement needs a delivery, of which there are no more than
/// the prefetch, and publications in flight must be limited by whoever waits for their outcomes.
final class LinkInbox: Sendable {
    private let commands = Mutex<[LinkCommand]>([])

    /// Whether it was empty, so that the thread must be woken.
    func put(_ command: LinkCommand) -> Bool {
        commands.withLock { commands in
            commands.append(command)
            return commands.count == 1
        }
    }

    func takeAll() -> [LinkCommand] {
        commands.withLock { commands in
            let taken = commands
            commands = []
            return taken
        }
    }
}
