import RoomCore
import Store

@testable import Worker

/// An `OutboxPublisher` with short names: events are called `a1`, room a's first.
final class OutboxBench {
    var outbox: OutboxPublisher
    var now: Int64 = 1_000_000
    /// Every number that was sent, with its event's name.
    private(set) var numbers: [UInt64: String] = [:]
    private(set) var settled: [UInt64] = []
    private(set) var finished: [Int64] = []
    private(set) var passedOver: [String] = []
    private(set) var convicted: [String] = []
    private(set) var passedOverPositions: Set<Int64> = []
    private(set) var refusedRooms: [RoomID] = []
    private(set) var overdueRooms: [RoomID] = []
    private var position: Int64 = 0
    private var sequences: [RoomID: Int64] = [:]

    init(_ adjust: (inout OutboxPublisher.Limits) -> Void = { _ in }) {
        var limits = OutboxPublisher.Limits()
        adjust(&limits)
        outbox = OutboxPublisher(limits: limits)
    }

    /// Takes the next event of each room named; the job is the event's position.
    func add(_ rooms: String) {
        for room in rooms.split(separator: " ").map({ RoomID(String($0)) }) {
            position += 1
            sequences[room, default: 0] += 1
            let sequence = sequences[room] ?? 0
            outbox.enqueue(
                OutboxMessage(
                    position: position,
                    draft: OutboxDraft(
                        room: room, sequence: sequence, type: "t", messageID: "\(room.text)\(sequence)",
                        timestamp: sequence, body: [UInt8(truncatingIfNeeded: position)])),
                job: UInt64(position))
        }
    }

    /// What goes out now, by name.
    func sent() -> [String] { send().map(\.event.draft.messageID) }

    func send() -> [OutboxPublisher.Sending] {
        let sendings = outbox.next(at: now)
        for sending in sendings { numbers[sending.id] = sending.event.draft.messageID }
        return sendings
    }

    /// The latest number of an event, or that of its n-th copy.
    func number(_ name: String, copy: Int? = nil) -> UInt64 {
        let all = numbers.filter { $0.value == name }.keys.sorted()
        return copy.map { all[$0 - 1] } ?? all.last ?? 0
    }

    func confirm(_ names: String, copy: Int? = nil) {
        outbox.confirmed(names.split(separator: " ").map { number(String($0), copy: copy) })
        collect()
    }

    func refuse(_ names: String) {
        outbox.refused(names.split(separator: " ").map { number(String($0)) }, at: now)
        collect()
    }

    func pass(_ milliseconds: Int64) {
        now += milliseconds
        outbox.tick(at: now)
        collect()
    }

    func lose(_ loss: ReplyPublisher.Loss = .withConnection) {
        outbox.channelLost(loss, at: now)
        collect()
    }

    func collect() {
        let progress = outbox.takeProgress()
        settled += progress.settledJobs
        finished += progress.finished
        passedOver += progress.passedOver.map(\.event.draft.messageID)
        passedOverPositions.formUnion(progress.passedOver.map(\.event.position))
        convicted += progress.convicted.map(\.draft.messageID)
        refusedRooms += progress.refusedRooms
        overdueRooms += progress.overdueRooms
    }
}
