package import AMQP
package import Contract
package import RoomCore
package import Service
import Synchronization

/// Where a feed of events begins.
package enum FeedStart: Hashable, Sendable {
    /// With what is published from now on.
    case now
    /// With the oldest event in the log.
    case first
    /// With the first event in the log of this instant or later.
    case time(Instant)
}

/// The events as they come, or first those in the log: each once and in order within its room.
///
/// Second copies are dropped by their sequence. From the log it goes on after a lost connection where it stopped; live
/// events of the time without a connection are missed, and `next` says so.
package final class EventFeed {
    package struct Item: Sendable {
        package let event: WatchedEvent
        /// As published.
        package let body: [UInt8]
    }

    package enum Outcome: Sendable {
        case item(Item)
        /// Connected, or connected again after a gap in which live events were missed.
        case connected(afterGap: Bool)
        case disconnected(AMQPError)
        case failed(RequestFailure)
        case stopped
    }

    private let mailbox: Mailbox<LinkEvent>
    private let link: Link
    private let start: FeedStart
    private let plan: FeedPlan
    private var pending: ArraySlice<LinkEvent> = []
    private var lastSequence: [RoomID: Int64] = [:]
    private var wasOpen = false

    /// - Parameter types: only these event types; empty for all.
    package init(
        connection: LinkConfiguration, topology: Topology, types: [String], start: FeedStart,
        mailbox: Mailbox<LinkEvent>
    ) {
        let plan = FeedPlan(topology: topology, types: types, start: start)
        self.start = start
        self.plan = plan
        self.mailbox = mailbox
        link = Link(
            configuration: connection, channels: { [plan.channel] },
            observer: { events in
                plan.note(events)
                mailbox.put(events)
            })
        link.start()
    }

    package func close() { link.stop() }

    /// Waits for what comes next, until `deadline` of the monotonic clock in milliseconds (nil for ever). Nil then.
    package func next(until deadline: Int64?) -> Outcome? {
        while true {
            while let event = pending.popFirst() {
                if let outcome = outcome(of: event) { return outcome }
            }
            let left = deadline.map { $0 - MonotonicClock.milliseconds() }
            if let left, left <= 0 { return nil }
            pending = mailbox.take(timeoutMilliseconds: left)[...]
            if pending.isEmpty, mailbox.isClosed { return .stopped }
        }
    }

    private func outcome(of event: LinkEvent) -> Outcome? {
        switch event {
        case .channelOpened:
            defer { wasOpen = true }
            return .connected(afterGap: wasOpen && start == .now)
        case .channelClosed(_, _, let error, _):
            guard let error, error.scope == .channel, error.isConfiguration, !wasOpen else { return nil }
            // A worker that has not been started yet declares what is missing.
            return error.kind == .notFound ? .disconnected(error) : .failed(.broker(error))
        case .disconnected(let error, _):
            return error.isConfiguration && !wasOpen ? .failed(.broker(error)) : .disconnected(error)
        case .delivery(let channel, let delivery):
            defer { if start != .now { link.acknowledge([delivery.tag], on: channel) } }
            plan.note(offset: delivery.properties.headers?["x-stream-offset"]?.integer)
            guard case .bytes(let body) = delivery.body, let event = WatchedEvent.decode(body) else {
                return nil
            }
            return take(event, body: body)
        default:
            return nil
        }
    }

    private func take(_ event: WatchedEvent, body: [UInt8]) -> Outcome? {
        if let last = lastSequence[event.room], event.sequence <= last { return nil }
        lastSequence[event.room] = event.sequence
        if case .time(let from) = start, event.time < from { return nil }
        guard plan.types.isEmpty || plan.types.contains(event.type) else { return nil }
        return .item(Item(event: event, body: body))
    }
}

/// What the feed's channel declares and consumes each time it opens.
private final class FeedPlan: Sendable {
    let types: [String]
    private let topology: Topology
    private let start: FeedStart
    private let token = Mutex(RandomToken.make())
    /// The offset in the log after which to go on.
    private let offset = Mutex<Int64?>(nil)

    init(topology: Topology, types: [String], start: FeedStart) {
        self.topology = topology
        self.types = types
        self.start = start
    }

    func note(_ events: [LinkEvent]) {
        let isLost = events.contains { if case .disconnected = $0 { true } else { false } }
        if isLost { token.withLock { $0 = RandomToken.make() } }
    }

    func note(offset new: Int64?) {
        guard let new else { return }
        offset.withLock { $0 = max($0 ?? new, new) }
    }

    var channel: ChannelPlan { start == .now ? live : log }

    /// All events from the fanout, or some types from the topic exchange.
    private var live: ChannelPlan {
        let bindings =
            types.isEmpty
            ? [OwnQueue.Binding(exchange: topology.eventsExchange)]
            : types.compactMap { ShortString($0) }.map {
                OwnQueue.Binding(exchange: topology.eventsTopicExchange, routingKey: $0)
            }
        let queue = topology.ownQueue(component: "watch", token: token.withLock { $0 }, bindings: bindings)
        return ChannelPlan(
            declare: queue?.declarations ?? [], prefetch: 1_000,
            consumers: queue.map { [ConsumerPlan(queue: $0.name, tag: "watch", noAck: true)] } ?? [])
    }

    /// The stream from an offset on; it goes on with what is published, so nothing lies between. Consumers of a
    /// stream must acknowledge.
    private var log: ChannelPlan {
        let from: FieldValue
        if let last = offset.withLock({ $0 }) {
            from = .int64(last + 1)
        } else if case .time(let instant) = start {
            from = .timestamp(UInt64(max(instant.milliseconds / 1_000, 0)))
        } else {
            from = .text("first")
        }
        return ChannelPlan(
            declare: topology.logDeclarations(.passive), prefetch: 500,
            consumers: [
                ConsumerPlan(
                    queue: topology.eventsLogQueue, tag: "watch", arguments: ["x-stream-offset": from])
            ])
    }
}
