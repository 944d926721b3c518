import RoomCore
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
/// - Where a message may have closed the channel (one larger than the broker takes), what was on its way is sent alone,
///   one at a time. What closes the channel then is refused as well, but is tried only once more: alone, after `patience`.
/// - An event leaves (is marked published) only behind everything before it in its room.
package struct OutboxPublisher {
    private enum State {
        case waiting, sent, refused, confirmed
        /// Closes the channel; its last try is still to come.
        case convicted
    }

    private struct Entry {
        let event: OutboxMessage
        /// The job that waits for this event's first confirm or refusal.
        var job: UInt64?
        var state = State.waiting
        var sentAt: Int64 = 0
        /// True once any copy was confirmed: a later refusal of another copy loses nothing.
        var wasConfirmed = false
        /// Its last try closed the channel.
        var closesChannel = false
        /// The number of the latest copy, and of the one before it, whose late end still counts; 0 for none.
        var number: UInt64 = 0
        var olderNumber: UInt64 = 0
    }

    /// A room's events that have not left yet, oldest first. A reference, so that they change in place.
    private final class Line {
        let room: RoomID
        var entries: [Entry] = []
        /// Whether it is among those that have something to send.
        var isReady = false
        /// Grows with each time that no confirm came, so that a silent broker is not flooded with copies.
        var overdueTimes: Int64 = 0

        init(_ room: RoomID) { self.room = room }
    }

    /// Where an event stands, until it leaves its line.
    private typealias Address = (line: Line, position: Int64)

    /// A room whose events some queue refuses.
    private struct Refusals {
        let since: Int64
        var last: Int64
    }

    private let limits: Limits
    private var lines: [RoomID: Line] = [:]
    private var refusals: [RoomID: Refusals] = [:]
    /// Those with something to send, in the order in which it became ready.
    private var ready: [Line] = []
    /// Latest copies without an end: these count towards the bound.
    private var inFlight: [UInt64: Address] = [:]
    /// Older copies of events that were sent again, at most one each: a late end counts, a missing one costs nothing.
    private var superseded: [UInt64: Address] = [:]
    /// What may have closed the channel and goes alone, before anything else; first to be tried last in it. Those that
    /// have had an end since are no suspects any more.
    private var suspects: [Address] = []
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

    /// Takes an event that it does not hold. Events of one room come in outbox order; one that comes late all the same
    /// gets its place before those that have not been sent yet.
    package mutating func enqueue(_ event: OutboxMessage, job: UInt64?) {
        let line = line(of: event.draft.room)
        let place =
            line.entries.last.map { $0.event.position < event.position } ?? true
            ? line.entries.count : firstIndex(from: event.position, in: line)
        line.entries.insert(Entry(event: event, job: job), at: place)
        held += 1
        if place > 0, refusals[line.room] != nil { settle(&line.entries[place]) }
        markReady(line)
    }

    private mutating func line(of room: RoomID) -> Line {
        if let line = lines[room] { return line }
        let line = Line(room)
        lines[room] = line
        return line
    }

    /// Whether an event of the outbox is in hand already.
    package func contains(_ event: OutboxMessage) -> Bool {
        lines[event.draft.room].map { index(of: event.position, in: $0) != nil } ?? false
    }

    /// The events to publish now, in order.
    package mutating func next(at uptime: Int64) -> [Sending] {
        if let (line, index) = suspect() {
            guard inFlight.isEmpty else { return [] }
            return [send(&line.entries[index], of: line, at: uptime)]
        }
        guard !ready.isEmpty else { return [] }
        var sendings: [Sending] = []
        var taken = 0
        for line in ready {
            guard send(line, at: uptime, into: &sendings) else { break }
            taken += 1
            line.isReady = false
        }
        ready.removeFirst(taken)
        return sendings
    }

    /// Sends what a room has to send; false where the bound stopped it.
    private mutating func send(_ line: Line, at uptime: Int64, into sendings: inout [Sending]) -> Bool {
        let isRefused = refusals[line.room] != nil
        for index in line.entries.indices where line.entries[index].state == .waiting {
            // While refusals last only the head is tried.
            if isRefused, index > 0 { break }
            supersede(&line.entries[index])
            guard inFlight.count < limits.inFlight else { return false }
            sendings.append(send(&line.entries[index], of: line, at: uptime))
        }
        return true
    }

    private mutating func send(_ entry: inout Entry, of line: Line, at uptime: Int64) -> Sending {
        let event = entry.event
        entry.state = .sent
        entry.sentAt = uptime
        entry.number = nextID
        inFlight[nextID] = (line, event.position)
        nextID += 1
        return Sending(id: entry.number, event: event)
    }

    /// Makes the latest copy an older one where its end is still to come, and forgets the one that was older still.
    private mutating func supersede(_ entry: inout Entry) {
        guard let address = inFlight.removeValue(forKey: entry.number) else { return }
        superseded[entry.olderNumber] = nil
        superseded[entry.number] = address
        entry.olderNumber = entry.number
    }

    /// Forgets both copies of an event that leaves.
    private mutating func forgetNumbers(_ entry: Entry) {
        inFlight[entry.number] = nil
        superseded[entry.olderNumber] = nil
    }

    private mutating func markReady(_ line: Line) {
        guard !line.isReady else { return }
        line.isReady = true
        ready.append(line)
    }

    // MARK: Ends

    package mutating func confirmed(_ ids: [UInt64]) {
        var touched: [Line] = []
        for id in ids {
            guard let (line, index) = take(id) else { continue }
            settle(&line.entries[index])
            line.entries[index].state = .confirmed
            line.entries[index].wasConfirmed = true
            line.overdueTimes = 0
            if touched.last !== line { touched.append(line) }
            // A confirmed head ends the refusals: the queue takes messages again.
            if index == 0, refusals[line.room] != nil {
                refusals[line.room] = nil
                sendAgain(line.room, .refused)
            }
        }
        for line in touched { leave(line) }
    }

    package mutating func refused(_ ids: [UInt64], at uptime: Int64) {
        for id in ids {
            guard let (line, index) = take(id) else { continue }
            // Another copy was taken meanwhile.
            guard line.entries[index].state != .confirmed else { continue }
            if refusals[line.room] == nil { progress.refusedRooms.append(line.room) }
            line.entries[index].closesChannel = false
            hold(line, index, as: .refused, at: uptime)
        }
    }

    /// Holds a room back behind an event that has had an end, and not the wanted one.
    private mutating func hold(_ line: Line, _ index: Int, as state: State, at uptime: Int64) {
        let room = line.room
        settle(&line.entries[index])
        line.entries[index].state = state
        if refusals[room] == nil {
            refusals[room] = Refusals(since: uptime, last: uptime)
            settleHeldBack(line)
        }
        refusals[room]?.last = uptime
        passOver(room, at: uptime)
    }

    /// The channel is gone: what had no end is sent again, with everything behind it. What was refused has another try
    /// on the next channel before it can be passed over; what closed a channel, on the next connection.
    package mutating func channelLost(_ loss: ReplyPublisher.Loss, at uptime: Int64) {
        // An older copy without an end may be what the broker has stumbled over only now.
        let wasAlone = superseded.isEmpty
        inFlight.removeAll(keepingCapacity: true)
        superseded.removeAll()
        let all = inOutboxOrder(lines)
        switch loss {
        case .message:
            // A suspect that is on its way is alone there, but for older copies.
            if wasAlone, let (line, index) = suspect(), line.entries[index].state == .sent {
                suspects.removeLast()
                convict(line, index, at: uptime)
            } else {
                suspects += all.flatMap { _, line in onTheirWay(line) }.reversed()
            }
        case .withConnection:
            for (_, line) in all where line.entries[0].state == .convicted { tryAlone(line) }
        case .exchange: break
        }
        // In outbox order across rooms, as at first.
        for (room, _) in all { sendAgain(room, .waiting, .sent, .confirmed, .refused) }
    }

    // MARK: What closes the channel

    /// The suspect whose turn it is.
    private mutating func suspect() -> (line: Line, index: Int)? {
        while let (line, position) = suspects.last {
            if let index = index(of: position, in: line), index == 0 || refusals[line.room] == nil {
                let state = line.entries[index].state
                if state == .waiting || state == .sent { return (line, index) }
            }
            suspects.removeLast()
        }
        return nil
    }

    /// What was on its way of a room, and what stands between, so that the order stays.
    private func onTheirWay(_ line: Line) -> [Address] {
        let tried = refusals[line.room] == nil ? line.entries[...] : line.entries.prefix(1)
        guard let last = tried.lastIndex(where: { $0.state == .sent }) else { return [] }
        return tried[...last].map { (line, $0.event.position) }
    }

    private mutating func convict(_ line: Line, _ index: Int, at uptime: Int64) {
        let event = line.entries[index].event
        let isOver = refusals[line.room].map { uptime - $0.since >= limits.patience } ?? false
        line.entries[index].closesChannel = true
        if !isOver { progress.convicted.append(event) }
        hold(line, index, as: isOver ? .refused : .convicted, at: uptime)
    }

    private mutating func tryAlone(_ line: Line) {
        line.entries[0].state = .waiting
        suspects.insert((line, line.entries[0].event.position), at: 0)
    }

    // MARK: Time

    /// What time asks for: refused heads are tried again, events without a confirm are sent again.
    package mutating func tick(at uptime: Int64) {
        guard uptime >= nextCheckAt else { return }
        nextCheckAt = uptime + limits.retryInterval / 2
        for (room, refusal) in refusals.sorted(by: { $0.key < $1.key }) {
            if uptime - refusal.last >= limits.memory, lines[room] == nil { refusals[room] = nil }
            passOver(room, at: uptime)
            guard let line = lines[room], let head = line.entries.first else { continue }
            if head.state == .refused, uptime - refusal.last >= limits.retryInterval {
                line.entries[0].state = .waiting
                markReady(line)
            } else if head.state == .convicted, uptime - refusal.since >= limits.patience {
                tryAlone(line)
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
    }

    /// The broker is not blocked any more: its time for a confirm begins now.
    package mutating func restartClocks(at uptime: Int64) {
        for line in lines.values {
            for index in line.entries.indices where line.entries[index].state == .sent {
                line.entries[index].sentAt = uptime
            }
        }
    }

    /// What happened since the last call.
    package mutating func takeProgress() -> Progress {
        defer { progress = Progress() }
        return progress
    }

    private mutating func sendAgain(_ room: RoomID, _ states: State...) {
        guard let line = lines[room] else { return }
        for index in line.entries.indices where states.contains(line.entries[index].state) {
            supersede(&line.entries[index])
            line.entries[index].state = .waiting
        }
        if refusals[room] != nil { settleHeldBack(line) }
        markReady(line)
    }

    /// Lets refused events go once the room's patience is over; each later one has its one try then.
    private mutating func passOver(_ room: RoomID, at uptime: Int64) {
        guard let refusal = refusals[room], uptime - refusal.since >= limits.patience, let line = lines[room]
        else { return }
        while let head = line.entries.first, head.state == .refused || head.state == .confirmed {
            if head.state == .refused, !head.wasConfirmed {
                progress.passedOver.append((head.event, head.closesChannel))
            }
            progress.finished.append(head.event.position)
            forgetNumbers(head)
            line.entries.removeFirst()
            held -= 1
        }
        if line.entries.isEmpty { lines[room] = nil } else { markReady(line) }
    }

    /// Lets confirmed events at the front go.
    private mutating func leave(_ line: Line) {
        let count = line.entries.prefix { $0.state == .confirmed }.count
        for entry in line.entries.prefix(count) {
            progress.finished.append(entry.event.position)
            forgetNumbers(entry)
        }
        line.entries.removeFirst(count)
        held -= count
        if line.entries.isEmpty { lines[line.room] = nil }
    }

    private mutating func take(_ id: UInt64) -> (line: Line, index: Int)? {
        guard let (line, position) = inFlight.removeValue(forKey: id) ?? superseded.removeValue(forKey: id),
            let index = index(of: position, in: line)
        else { return nil }
        // An older copy's end is the event's: its latest copy is not waited for, either.
        supersede(&line.entries[index])
        return (line, index)
    }

    private func index(of position: Int64, in line: Line) -> Int? {
        let index = firstIndex(from: position, in: line)
        return index < line.entries.count && line.entries[index].event.position == position ? index : nil
    }

    /// The place of the first event at a position or behind it.
    private func firstIndex(from position: Int64, in line: Line) -> Int {
        var low = 0
        var high = line.entries.count
        while low < high {
            let middle = (low + high) / 2
            if line.entries[middle].event.position < position { low = middle + 1 } else { high = middle }
        }
        return low
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
