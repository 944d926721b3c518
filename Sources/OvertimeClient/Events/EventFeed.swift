import AMQP
import Contract
import FoundationEssentials
import RoomCore
import Service

/// One consumer of events on a connection of its own, and what waits between it and its subscriber.
///
/// What was delivered is acknowledged once the subscriber has taken it, so a slow one holds back the broker and nothing piles up
/// here. Second copies are dropped by their sequence.
final class EventFeed: Sendable {
    private let plan: FeedPlan
    private let buffer: FeedBuffer
    private let link: Link

    /// - Parameters:
    ///   - room: only this room's events; nil for all.
    ///   - observer: told of lost and new connections, on the link's thread.
    init(
        connection: LinkConfiguration, topology: Topology, component: String, room: String?,
        start: Overtime.Start, observer: @escaping @Sendable (Overtime.FeedState) -> Void
    ) {
        let plan = FeedPlan(topology: topology, component: component, start: start)
        let buffer = FeedBuffer(room: room.map { RoomID($0) }, plan: plan, observer: observer)
        self.plan = plan
        self.buffer = buffer
        link = Link(
            configuration: connection, channels: { [plan.channel] }, observer: { buffer.handle($0) })
        buffer.attach(link)
        link.start()
    }

    /// Waits until events are heard.
    func ready(limit: Duration?) async throws(OvertimeError) {
        let buffer = buffer
        let timer = limit.map { limit in
            Task {
                await MonotonicClock.pause(limit)
                if !Task.isCancelled { buffer.expire() }
            }
        }
        defer { timer?.cancel() }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { buffer.whenReady($0) }
        } onCancel: {
            buffer.fail(.cancelled)
        }
        try result.get()
    }

    /// The next event or gap; nil once it was closed, or the task cancelled.
    func next() async -> Overtime.Notice? {
        let buffer = buffer
        return await withTaskCancellationHandler {
            await withCheckedContinuation { buffer.next($0) }
        } onCancel: {
            buffer.giveUp()
        }
    }

    /// Ends the sequence, and its connection without waiting for it.
    func requestClose() {
        buffer.close()
        link.requestStop()
    }

    /// The same, and waits: at most two seconds.
    func close() {
        buffer.close()
        link.stop()
    }

    deinit { buffer.close() }
}
