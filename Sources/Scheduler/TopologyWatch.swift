package import AMQP

/// Notices that an exchange which brings session events, the others' ticks or answers was deleted.
///
/// No channel that listens closes with it: the scheduler would only be deaf. A channel of its own looks for them and binds
/// again from time to time; where one is missing, the listening channels are opened anew, which declares it, binds to it
/// and asks for a snapshot.
package struct TopologyWatch {
    private static let interval: Int64 = 5_000
    private let reopen: (_ channel: Int) -> Void
    private var nextAt: Int64 = 0
    private var isOpen = false

    /// - Parameter reopen: closes a channel of the listening connection and opens it again.
    package init(reopen: @escaping (_ channel: Int) -> Void) { self.reopen = reopen }

    /// Looks again if it is time to; `uptime` in milliseconds of the monotonic clock.
    package mutating func look(at uptime: Int64) {
        guard isOpen, uptime >= nextAt else { return }
        nextAt = uptime + Self.interval
        reopen(SchedulerChannel.watch)
    }

    /// Takes what concerns the watch; false where it is somebody else's.
    package mutating func handle(_ event: LinkEvent) -> Bool {
        switch event {
        case .channelOpened(SchedulerChannel.watch, _):
            isOpen = true
        case .channelClosed(SchedulerChannel.watch, _, let error, _):
            isOpen = false
            guard error?.kind == .notFound else { return true }
            SchedulerChannel.all.sorted().forEach(reopen)
        default:
            return false
        }
        return true
    }
}
