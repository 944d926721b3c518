package import RoomCore
package import Store

/// What goes out next and what has arrived: events in outbox order, room by room.
///
/// Without input or output of its own: publications leave it by number, and their ends come back in. Three rules keep
/// a room's events in order while other rooms go on:
///
/// - What is unconfirmed when the channel is lost, or not confirmed in time, is sent again together with everything
///   of its room behind it, in order, for as long as it takes.
/// - A refusal (some bound queue is full, or has no quorum) holds back that room's later events only. The first
///   unconfirmed one is tried again for `patience` counted from the room's first refusal, then passed over; while
///   refusals last, each later one gets one try.
/// - An event leaves (is marked published) only behind everything before it in its room.
package struct OutboxPublisher {
    package struct Limits {
        /// Publications on their way at one time.
        package var inFlight = 4096
        /// Milliseconds without a confirm after which a room's events are sent again; doubles up to eightfold.
        package var confirmTimeout: Int64 = 10_000
        /// Milliseconds between two tries of a refused event.
        package var retryInterval: Int64 = 1_000
        /// Milliseconds from a room's first refusal until its refused events are passed over.
        package var patience: Int64 = 60_000
        /// Milliseconds without a refusal after which a room's refusals are forgotten.
        package var memory: Int64 = 600_000

        package init() {}
    }

    /// One event to publish, under the number by which its end is told.
    package struct Sending {
        package let id: UInt64
        package let event: OutboxMessage
    }

    /// What became of events since it was last asked.
    package struct Progress {
        /// Jobs whose event has had its first confirm or refusal, one mention an event.
        package var settledJobs: [UInt64] = []
        /// Positions that are done with: confirmed, or passed over.
        package var finished: [Int64] = []
        package var passedOver: [OutboxMessage] = []
        /// Rooms that began to be refused.
        package var refusedRooms: [RoomID] = []
        /// Rooms whose events were sent again because no confirm came in time.
        package var overdueRooms: [RoomID] = []
    }

    private enum State { case waiting, sent, refused, confirmed }

    private struct Entry {
        let event: OutboxMessage
        /// The job that waits for this event's first confirm or refusal.
        var job: UInt64?
        var state = State.waiting
        var sentAt: Int64 = 0
    }

    /// A room's events that have not left yet, oldest first. A reference, so that they change in place.
    private final class Line {
        var entries: [Entry] = []
        /// Grows with each time that no confirm came, so that a silent broker is not flooded with copies.
        var overdueTimes: Int64 = 0
    }

    /// A room whose events some queue refuses.
    private struct Refusals {
        let since: Int64
        var last: Int64
    }

    private let limits: Limits
    private var lines: [RoomID: Line] = [:]
    private var refusals: [RoomID: Refusals] = [:]
    /// Rooms with something to send, in the order in which it became ready.
    private var ready: [RoomID] = []
    private var isReady: Set<RoomID> = []
    private var inFlight: [UInt64: (room: RoomID, position: Int64)] = [:]
    private var nextID: UInt64 = 1
    private var progress = Progress()
    private var nextCheckAt: Int64 = 0
    /// How many events are in hand.
    package private(set) var held = 0

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// True where only rooms that are being refused have events left: nothing that waiting a moment would end.
    package var isQuiet: Bool { held == 0 || lines.keys.allSatisfy { refusals[$0] != nil } }

    /// How many publications are on their way.
    package var inFlightCount: Int { inFlight.count }

    // MARK: Out

    /// Takes an event; events of one room must come in outbox order.
    package mutating func enqueue(_ event: OutboxMessage, job: UInt64?) {
        let line = lines[event.draft.room] ?? Line()
        lines[event.draft.room] = line
        line.entries.append(Entry(event: event, job: job))
        held += 1
        if refusals[event.draft.room] != nil { settleHeldBack(line) }
        markReady(event.draft.room)
    }

    /// Whether an event of the outbox is in hand already.
    package func contains(_ event: OutboxMessage) -> Bool {
        lines[event.draft.room].map { index(of: event.position, in: $0) != nil } ?? false
    }

    /// The events to publish now, in order.
    package mutating func next(at uptime: Int64) -> [Sending] {
        guard !ready.isEmpty else { return [] }
        var sendings: [Sending] = []
        var taken = 0
        for room in ready {
            guard inFlight.count < limits.inFlight else { break }
            taken += 1
            isReady.remove(room)
            send(room, at: uptime, into: &sendings)
        }
        ready.removeFirst(taken)
        return sendings
    }

    private mutating func send(_ room: RoomID, at uptime: Int64, into sendings: inout [Sending]) {
        guard let line = lines[room] else { return }
        let isRefused = refusals[room] != nil
        for index in line.entries.indices where line.entries[index].state == .waiting {
            // While refusals last only the head is tried.
            if isRefused, index > 0 { break }
            line.entries[index].state = .sent
            line.entries[index].sentAt = uptime
            let event = line.entries[index].event
            inFlight[nextID] = (room, event.position)
            sendings.append(Sending(id: nextID, event: event))
            nextID += 1
        }
    }

    private mutating func markReady(_ room: RoomID) {
        if isReady.insert(room).inserted { ready.append(room) }
    }

    // MARK: Ends

    package mutating func confirmed(_ ids: [UInt64]) {
        var touched: [RoomID] = []
        for id in ids {
            guard let (line, room, index) = take(id) else { continue }
            settle(&line.entries[index])
            line.entries[index].state = .confirmed
            line.overdueTimes = 0
            if touched.last != room { touched.append(room) }
            // A confirmed head ends the refusals: the queue takes messages again.
            if index == 0, refusals.removeValue(forKey: room) != nil { sendAgain(room, .refused) }
        }
        for room in touched { leave(room) }
    }

    package mutating func refused(_ ids: [UInt64], at uptime: Int64) {
        for id in ids {
            guard let (line, room, index) = take(id) else { continue }
            settle(&line.entries[index])
            line.entries[index].state = .refused
            if refusals[room] == nil {
                refusals[room] = Refusals(since: uptime, last: uptime)
                progress.refusedRooms.append(room)
            }
            refusals[room]?.last = uptime
            settleHeldBack(line)
            passOver(room, at: uptime)
        }
    }

    /// The channel is gone: what had no end is sent again, with everything behind it.
    package mutating func channelLost() {
        inFlight.removeAll(keepingCapacity: true)
        for (room, _) in inOutboxOrder(lines) { sendAgain(room, .waiting, .sent, .confirmed) }
    }

    /// What time asks for: refused heads are tried again, events without a confirm are sent again.
    package mutating func tick(at uptime: Int64) {
        guard uptime >= nextCheckAt else { return }
        nextCheckAt = uptime + limits.retryInterval / 2
        for (room, refusal) in refusals.sorted(by: { $0.key < $1.key }) {
            if uptime - refusal.last >= limits.memory, lines[room] == nil { refusals[room] = nil }
            passOver(room, at: uptime)
            if let line = lines[room], line.entries.first?.state == .refused,
                uptime - refusal.last >= limits.retryInterval
            {
                line.entries[0].state = .waiting
                markReady(room)
            }
        }
        var overdue: [RoomID: Line] = [:]
        for (room, line) in lines {
            guard let oldest = line.entries.first(where: { $0.state == .sent }),
                uptime - oldest.sentAt >= limits.confirmTimeout << min(line.overdueTimes, 3)
            else { continue }
            overdue[room] = line
        }
        for (room, line) in inOutboxOrder(overdue) {
            line.overdueTimes += 1
            progress.overdueRooms.append(room)
            sendAgain(room, .sent, .confirmed)
        }
        // Whoever is sent again is on its way under a new number; the old one must not hold its place for ever.
        if !overdue.isEmpty { inFlight = inFlight.filter { overdue[$0.value.room] == nil } }
    }

    /// What happened since the last call.
    package mutating func takeProgress() -> Progress {
        defer { progress = Progress() }
        return progress
    }

    private mutating func sendAgain(_ room: RoomID, _ states: State...) {
        guard let line = lines[room] else { return }
        for index in line.entries.indices where states.contains(line.entries[index].state) {
            line.entries[index].state = .waiting
        }
        markReady(room)
    }

    /// Lets refused events go once the room's patience is over; each later one has its one try then.
    private mutating func passOver(_ room: RoomID, at uptime: Int64) {
        guard let refusal = refusals[room], uptime - refusal.since >= limits.patience, let line = lines[room]
        else { return }
        while let head = line.entries.first, head.state == .refused || head.state == .confirmed {
            if head.state == .refused { progress.passedOver.append(head.event) }
            progress.finished.append(head.event.position)
            line.entries.removeFirst()
            held -= 1
        }
        if line.entries.isEmpty { lines[room] = nil } else { markReady(room) }
    }

    /// Lets confirmed events at the front go.
    private mutating func leave(_ room: RoomID) {
        guard let line = lines[room] else { return }
        let count = line.entries.prefix { $0.state == .confirmed }.count
        progress.finished.append(contentsOf: line.entries.prefix(count).lazy.map(\.event.position))
        line.entries.removeFirst(count)
        held -= count
        if line.entries.isEmpty { lines[room] = nil }
    }

    private mutating func take(_ id: UInt64) -> (line: Line, room: RoomID, index: Int)? {
        guard let (room, position) = inFlight.removeValue(forKey: id), let line = lines[room],
            let index = index(of: position, in: line)
        else { return nil }
        return (line, room, index)
    }

    private func index(of position: Int64, in line: Line) -> Int? {
        var low = 0
        var high = line.entries.count
        while low < high {
            let middle = (low + high) / 2
            if line.entries[middle].event.position < position { low = middle + 1 } else { high = middle }
        }
        return low < line.entries.count && line.entries[low].event.position == position ? low : nil
    }

    /// Across rooms as at first, and never as a hash would have it.
    private func inOutboxOrder(_ lines: [RoomID: Line]) -> [(key: RoomID, value: Line)] {
        lines.sorted { first(of: $0.value) < first(of: $1.value) }
    }

    private func first(of line: Line) -> Int64 { line.entries.first?.event.position ?? .max }

    /// What is held back behind a refusal is safe in the outbox: its deliveries need not wait, or they would fill
    /// the prefetch and hold up other rooms.
    private mutating func settleHeldBack(_ line: Line) {
        for index in line.entries.indices.dropFirst() where line.entries[index].state == .waiting {
            settle(&line.entries[index])
        }
    }

    private mutating func settle(_ entry: inout Entry) {
        guard let job = entry.job else { return }
        entry.job = nil
        progress.settledJobs.append(job)
    }
}
