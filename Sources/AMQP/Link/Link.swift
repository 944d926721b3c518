internal import Glibc
internal import Synchronization

/// One connection that keeps itself: it connects, opens its channels, and comes back after any loss.
///
/// A link owns one thread, and everything of librabbitmq stays on it. Its methods may be called from any thread: they
/// leave a command and wake the thread. What happens is told to the observer, on the link's thread, in batches.
///
/// ```
///  start ─► connecting ──────► connected ─► channels open, each by itself ─► … ─► stop ─► stopped
///               ▲  failed          │ lost, closed, reconnect()
///               └── backoff ◄──────┘
/// ```
///
/// | Failure | What the link does | What the observer hears |
/// | --- | --- | --- |
/// | no connection, login refused | backoff, again | `disconnected` |
/// | connection lost or closed, an answer too late | all channels end, backoff, again | `channelClosed`…, `disconnected` |
/// | channel closed by the broker, consumer cancelled | that channel alone, again after backoff | `channelClosed` |
/// | broker blocks publishers | publications wait here, acknowledgements go on | `blocked`, `unblocked` |
/// | thread hangs in the library | the watchdog cuts the socket after 3 heartbeats | as connection lost |
///
/// Each life of a channel has a generation, unique within the link. What belongs to an older generation is dropped:
/// `channelClosed` has already said that it is over. A connection should either consume or publish: the broker stops
/// reading from one that publishes while it is short of memory, acknowledgements included.
package final class Link: Sendable {
    private let configuration: LinkConfiguration
    private let channels: @Sendable () -> [ChannelPlan]
    private let observer: @Sendable ([LinkEvent]) -> Void
    private let inbox = LinkInbox()

    private struct Running {
        var control: LinkControl
        var thread: OwnedThread
        var watchdog: Watchdog
    }

    private enum State {
        case new
        case running(Running)
        case stopped
    }

    private let state = Mutex(State.new)

    /// - Parameters:
    ///   - channels: asked anew at each connect, and when a channel opens again: names may be fresh each time. A
    ///     channel's number is its index.
    ///   - observer: called on the link's own thread and must return at once.
    package init(
        configuration: LinkConfiguration, channels: @escaping @Sendable () -> [ChannelPlan],
        observer: @escaping @Sendable ([LinkEvent]) -> Void
    ) {
        self.configuration = configuration
        self.channels = channels
        self.observer = observer
    }

    deinit { requestStop() }

    /// Starts the thread. A second call, and one after `stop`, does nothing.
    ///
    /// A process without threads or descriptors is told as `disconnected` and `stopped`.
    package func start() {
        let failure = state.withLock { state -> AMQPError? in
            guard case .new = state else { return nil }
            guard let control = LinkControl(),
                let watchdog = Watchdog(control: control, heartbeatSeconds: configuration.heartbeatSeconds)
            else {
                state = .stopped
                return .noDescriptor
            }
            // The thread holds everything but the link, so that a forgotten link ends it.
            let (configuration, channels, observer, inbox) = (configuration, channels, observer, inbox)
            do throws(OwnedThread.Failure) {
                let thread = try OwnedThread.start(name: "amqp-link", stackBytes: Self.stackBytes) {
                    let loop = LinkLoop(
                        configuration: configuration, channels: channels, observer: observer, inbox: inbox,
                        control: control)
                    loop.run()
                }
                state = .running(Running(control: control, thread: thread, watchdog: watchdog))
                return nil
            } catch {
                state = .stopped
                return AMQPError(scope: .connection, kind: .resources, text: "no thread: error \(error.code)")
            }
        }
        if let failure { observer([.disconnected(failure, retryInMilliseconds: 0), .stopped]) }
    }

    /// Hands over publications for one life of a channel; those for another one are dropped.
    ///
    /// Nothing limits how many wait here: limit how many lack an outcome.
    package func publish(_ publications: [Publication], on channel: Int, generation: UInt64) {
        guard !publications.isEmpty else { return }
        put(.publish(publications, channel: channel, generation: generation))
    }

    /// Acknowledges deliveries, in one frame where that settles nothing else. Tags of older lives are dropped.
    package func acknowledge(_ tags: [DeliveryTag], on channel: Int) {
        guard !tags.isEmpty else { return }
        put(.acknowledge(tags, channel: channel))
    }

    /// Hands a delivery back, to the queue or to its dead letters.
    package func reject(_ tag: DeliveryTag, requeue: Bool, on channel: Int) {
        put(.reject(tag, requeue: requeue, channel: channel))
    }

    /// Closes a channel after everything asked for before, and keeps it closed, also across reconnects.
    ///
    /// There is no `basic.cancel`: after one, a successor would overtake what is unacknowledged here.
    package func closeChannel(_ channel: Int) {
        put(.close(channel: channel))
    }

    /// Opens a channel and keeps it open.
    package func openChannel(_ channel: Int) {
        put(.open(channel: channel))
    }

    /// Drops the connection and makes a new one; while waiting for the next attempt, makes it now.
    package func reconnect() {
        put(.reconnect)
    }

    /// Asks for what `stop` does, without waiting: several links then take the time of one.
    package func requestStop() {
        state.withLock { state in
            guard case .running(let running) = state else { return }
            running.control.requestStop()
        }
    }

    /// Sends what was asked for before, closes, and waits for the thread: at most two seconds in any state.
    ///
    /// A connection that does not answer is cut. Only a TLS handshake cannot be cut: its thread is left to end by
    /// itself within the connect timeout. Called by the observer itself, it only asks and does not wait.
    package func stop() {
        let running = state.withLock { state -> Running? in
            defer { if case .new = state { state = .stopped } }
            guard case .running(let running) = state else { return nil }
            return running
        }
        guard let running else { return }
        running.control.requestStop()
        guard !running.thread.isCurrent else { return }
        if !running.thread.join(atMost: .milliseconds(1500)) {
            running.control.cut()
            running.thread.join(atMost: .milliseconds(400))
        }
        running.watchdog.stop()
        state.withLock { $0 = .stopped }
    }

    private func put(_ command: LinkCommand) {
        guard inbox.put(command) else { return }
        state.withLock { state in
            if case .running(let running) = state { running.control.wake.signal() }
        }
    }

    /// A message nested as deep as one frame allows takes less than 2 MiB of it.
    private static let stackBytes = 16 << 20
}
