import AMQP
import Contract
import RoomCore
import Service
import Synchronization

/// What a feed's channel declares and consumes each time it opens: the log from where it stopped, or, where there is no log or it
/// is down, a queue of its own with what is published from then on.
final class FeedPlan: Sendable {
    enum Source: Equatable {
        case log
        case live
    }

    private struct State {
        var token = RandomToken.make()
        /// The offset in the log of the last event that was taken; nil before the first.
        var offset: Int64?
        /// The instant from which on the log is read where no offset is known.
        var from: Instant?
        /// How often in a row the log could not be read.
        var failures = 0
        var source: Source
        /// The next delivery is the first of its channel.
        var isFirst = false
    }

    private let topology: Topology
    private let component: String
    private let start: Overtime.Start
    private let state: Mutex<State>

    /// So many tries the log gets before a feed does without it.
    private static let triesOfLog = 3
    static let prefetch: UInt16 = 500
    /// Of events that wait for a subscriber without a log; then the oldest go, and are missed as a gap.
    private static let mostWaiting: Int32 = 100_000
    private static let offsetsOfBroker: Int64 = 16
    /// How far before its start the log is read after a loss before any event has come: clocks differ.
    private static let margin = TimeSpan.seconds(60)

    init(topology: Topology, component: String, start: Overtime.Start) {
        self.topology = topology
        self.component = component
        self.start = start
        var state = State(source: topology.logMaxAge == nil ? .live : .log)
        if case .after(let position, _) = start { state.offset = position }
        self.state = Mutex(state)
    }

    /// Where the events come from by now.
    var source: Source { state.withLock { $0.source } }

    /// The log, whose absence may only mean that no worker has been started yet.
    var sourceName: String {
        source == .log ? topology.eventsLogQueue.description : topology.eventsExchange.description
    }

    /// To be told before the link connects again: the log is tried once more.
    func noteLoss() {
        state.withLock { state in
            state.token = RandomToken.make()
            state.source = topology.logMaxAge == nil ? .live : .log
        }
    }

    /// The log could not be read though the connection stands.
    ///
    /// - Parameter isForGood: no other try is of use before the next connection.
    func noteFailure(isForGood: Bool) {
        state.withLock { state in
            state.failures += 1
            if isForGood || state.failures >= Self.triesOfLog { state.source = .live }
        }
    }

    /// The log is not the one that was read: its offsets say nothing any more.
    ///
    /// - Returns: false where none was known.
    func forgetOffset(lastEvent: Instant?) -> Bool {
        state.withLock { state in
            guard state.offset != nil else { return false }
            state.offset = nil
            state.from = (lastEvent ?? Instant(milliseconds: SystemClock().nowMilliseconds())) - Self.margin
            return true
        }
    }

    func noteOpened() {
        state.withLock { state in
            state.isFirst = true
            guard state.from == nil, start == .now else { return }
            state.from = Instant(milliseconds: SystemClock().nowMilliseconds()) - Self.margin
        }
    }

    /// To be told of each delivery; false where events are missing before it.
    ///
    /// Only the first of a channel can tell: retention takes whole segments of the log. Some numbers the broker uses itself.
    func noteDelivered(offset: Int64?) -> Bool {
        state.withLock { state in
            state.failures = 0
            defer { state.isFirst = false }
            guard state.isFirst, let offset, let last = state.offset else { return true }
            return offset - last <= Self.offsetsOfBroker
        }
    }

    func noteTaken(offset: Int64) {
        state.withLock { $0.offset = max($0.offset ?? offset, offset) }
    }

    /// The events that were seen in an earlier life.
    var seen: [RoomID: Int64] {
        guard case .after(_, let seen) = start else { return [:] }
        return Dictionary(seen.map { (RoomID($0.key), $0.value) }) { max($0, $1) }
    }

    /// Before this instant an event is none that was asked for.
    var earliest: Instant? {
        if case .time(let date) = start { Instant(date) } else { nil }
    }

    var channel: ChannelPlan { source == .log ? log : live }

    private var live: ChannelPlan {
        let queue = topology.ownQueue(
            component: component, token: state.withLock { $0.token },
            bindings: [OwnQueue.Binding(exchange: topology.eventsExchange)],
            arguments: ["x-max-length": .int32(Self.mostWaiting)])
        return ChannelPlan(
            declare: queue?.declarations ?? [], prefetch: Self.prefetch,
            consumers: queue.map { [ConsumerPlan(queue: $0.name, tag: "events")] } ?? [])
    }

    /// It goes on with what is published, so nothing lies between. Consumers of a stream must acknowledge.
    private var log: ChannelPlan {
        let (offset, from) = state.withLock { ($0.offset, $0.from) }
        let start: FieldValue =
            if let offset {
                .int64(offset + 1)
            } else if let from {
                .timestamp(UInt64(max(from.milliseconds / 1_000, 0)))
            } else {
                switch self.start {
                case .now, .after: .text("next")
                case .beginning: .text("first")
                case .time(let date): .timestamp(UInt64(max(Instant(date).milliseconds / 1_000, 0)))
                }
            }
        return ChannelPlan(
            declare: topology.logDeclarations(.passive), prefetch: Self.prefetch,
            consumers: [
                ConsumerPlan(
                    queue: topology.eventsLogQueue, tag: "events", arguments: ["x-stream-offset": start])
            ], settlesConsumers: true)
    }
}
