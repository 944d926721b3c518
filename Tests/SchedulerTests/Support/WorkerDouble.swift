import AMQP
import Contract
import RoomCore

@testable import Scheduler

/// A worker in few words: rooms with instants at which they have something to say, by its own clock.
struct WorkerDouble {
    struct Known {
        var sequence: Int64
        /// What is still to come; empty once the session is over.
        var dues: [Int64]
    }

    /// How far its clock is ahead of the scheduler's.
    var skew: Int64 = 0
    var rooms: [RoomID: Known] = [:]
    /// What was announced, with the worker's time.
    private(set) var announced: [(room: RoomID, at: Int64, due: Int64)] = []
    private(set) var ticks = 0
    private(set) var queries = 0

    /// Answers one publication of a scheduler that arrives at `wall` of the scheduler's clock.
    mutating func receive(_ publication: Publication, wall: Int64) -> [Scheduler.Input] {
        let now = wall + skew
        if let tick = Tick.decode(publication.body) { return receive(tick, publication, now: now) }
        guard case .success(.rooms(let after, let limit)) = QueryDecoder.decode(publication.body) else {
            return []
        }
        queries += 1
        let all = rooms.keys.filter { rooms[$0]?.dues.isEmpty == false }.sorted()
        let page = all.filter { after == nil || $0 > after ?? $0 }.prefix(limit)
        let rows = page.map { room in
            LiveRoom(
                room: room, session: 1, state: .running, startedAt: nil, endsAt: nil,
                nextDueAt: rooms[room]?.dues.first.map(Instant.init(milliseconds:)), connected: 0,
                extensions: 0, sequence: rooms[room]?.sequence ?? 0)
        }
        let body = QueryReplyEncoder.rooms(
            rows, next: page.count == limit ? page.last : nil, serverTime: Instant(milliseconds: now))
        return [answer(publication, body)]
    }

    private mutating func receive(_ tick: Tick, _ publication: Publication, now: Int64) -> [Scheduler.Input] {
        ticks += 1
        let rows = tick.rooms.map { room in
            guard var known = rooms[room] else {
                return TickAnswer.Row(room: room, nextDueAt: nil, sequence: 0)
            }
            let passed = known.dues.prefix { $0 <= now }
            if let due = passed.last {
                known.dues.removeFirst(passed.count)
                known.sequence += 1
                rooms[room] = known
                announced.append((room, now, due))
            }
            return TickAnswer.Row(
                room: room, nextDueAt: known.dues.first.map(Instant.init(milliseconds:)),
                sequence: known.sequence)
        }
        let body = TickAnswer(serverTime: Instant(milliseconds: now), rooms: rows).encode()
        return [answer(publication, body)]
    }

    private func answer(_ publication: Publication, _ body: [UInt8]) -> Scheduler.Input {
        .answer(publication.properties.correlationID, body)
    }
}

extension Scheduler.Input {
    static func delivery(
        _ channel: Int, _ body: [UInt8], correlation: ShortString? = nil
    ) -> Scheduler.Input {
        .consumer(
            .delivery(
                channel,
                Delivery(
                    consumerTag: "c", tag: DeliveryTag(generation: 1, number: 1), redelivered: false,
                    exchange: "", routingKey: "", properties: Properties(correlationID: correlation),
                    body: .bytes(body))))
    }

    /// A session event: due next at an instant, or over.
    static func event(_ room: RoomID, _ sequence: Int64, dueAt: Int64?) -> Scheduler.Input {
        let type = dueAt == nil ? "session.ended" : "session.extended"
        let due = dueAt.map { #","nextDueAt":"\#(TimeText.text(Instant(milliseconds: $0)))""# } ?? ""
        let body = #"{"type":"\#(type)","sequence":"\#(sequence)","data":{"room":"\#(room.text)"\#(due)}}"#
        return .delivery(SchedulerChannel.events, Array(body.utf8))
    }

    /// The event of a window, which a standby alone hears.
    static func window(_ room: RoomID, _ sequence: Int64, dueAt: Int64) -> Scheduler.Input {
        let due = TimeText.text(Instant(milliseconds: dueAt))
        let data = #"{"room":"\#(room.text)","nextDueAt":"\#(due)"}"#
        let body = #"{"type":"session.window.opened","sequence":"\#(sequence)","data":\#(data)}"#
        return .delivery(SchedulerChannel.windows, Array(body.utf8))
    }

    static func answer(_ correlation: ShortString?, _ body: [UInt8]) -> Scheduler.Input {
        .delivery(SchedulerChannel.answers, body, correlation: correlation)
    }

    /// Another scheduler's tick.
    static func tick(_ scheduler: String, _ rooms: [RoomID]) -> Scheduler.Input {
        .delivery(SchedulerChannel.ticks, Tick(scheduler: scheduler, rooms: rooms).encode())
    }
}
