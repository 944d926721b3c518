package import Metrics
package import RoomCore

/// Which room is to be fired when: the next due instant of every live room, and of those fired when to fire again.
///
/// Owns no truth: everything in it comes from the worker, by a snapshot, an event or an answer, and whichever knows the
/// higher sequence counts. A room fired too often is harmless, a lost tick is fired again.
package struct Agenda {
    private enum State {
        /// To be fired at an instant of the worker's clock.
        case armed(Int64)
        /// Fired this many times, first at a point of the monotonic clock; in the list of those to fire again.
        case fired(times: Int, since: Int64)
    }

    private struct Entry {
        var sequence: Int64
        var state: State
        /// Tells the heap entries that still count.
        var ticket: UInt64

        /// Whether it was fired, and not only put off.
        var isOverdue: Bool { if case .fired(let times, _) = state { times > 0 } else { false } }

        /// Since when it is fired in vain; nil before that was so three times.
        var unansweredSince: Int64? {
            if case .fired(let times, let since) = state, times > 3 { since } else { nil }
        }
    }

    private struct Alarm {
        let room: RoomID
        let ticket: UInt64
    }

    private var entries: [RoomID: Entry] = [:]
    /// How late rooms were when they were first fired.
    package private(set) var lateness = Histogram(.firingLateness)
    private var deadlines = DeadlineHeap<Alarm>()
    private var retries = DeadlineHeap<Alarm>()
    private var nextTicket: UInt64 = 1
    /// Rooms that ended while a snapshot is being read, so that an older page revives none; nil otherwise.
    private var endedDuringSnapshot: [RoomID: Int64]?

    private static let shortestWait: Int64 = 50
    private static let firstRetry: Int64 = 2_000
    private static let longestRetry: Int64 = 30_000

    package init() {}

    package var count: Int { entries.count }
    /// Rooms that were fired and of which no newer state was seen yet.
    package private(set) var overdue = 0
    /// Those of them that were fired three times and more in vain.
    package private(set) var unanswered = 0
    /// Since when the first of these was, by the monotonic clock; counts while there are any.
    package private(set) var unansweredSince: Int64 = 0
    /// With those that no longer count.
    var alarmCount: Int { deadlines.count + retries.count }

    /// When each room is to be fired, by the worker's clock; nil for those fired and not answered yet.
    package var dueAt: [RoomID: Instant?] {
        entries.mapValues { entry in
            guard case .armed(let at) = entry.state else { return nil }
            return Instant(milliseconds: at)
        }
    }

    // MARK: Learning

    package mutating func beginSnapshot() { endedDuringSnapshot = endedDuringSnapshot ?? [:] }
    package mutating func endSnapshot() { endedDuringSnapshot = nil }

    /// A session event: newer than anything with a lower sequence. No `dueAt`: the session is over.
    package mutating func learn(room: RoomID, sequence: Int64, dueAt: Instant?) {
        if let known = entries[room], known.sequence > sequence { return }
        guard let dueAt else {
            set(room, nil)
            endedDuringSnapshot?[room] = sequence
            return
        }
        arm(room, sequence: sequence, at: dueAt.milliseconds)
    }

    /// A row of a snapshot. Of two that know the same, the one in hand counts: it may have been fired already.
    package mutating func learnSnapshot(room: RoomID, sequence: Int64, dueAt: Instant?) {
        if let ended = endedDuringSnapshot?[room], ended >= sequence { return }
        if let known = entries[room], known.sequence >= sequence { return }
        guard let dueAt else { return }
        arm(room, sequence: sequence, at: dueAt.milliseconds)
    }

    /// The worker looked at a room that was fired, and says when it is due next. That re-arms it and is no retry. Where the instant has passed already by
    /// what is known of the worker's clock, the clocks disagree: then the time that was left when the worker answered
    /// is waited for on the monotonic clock.
    package mutating func learnAnswer(
        room: RoomID, sequence: Int64, dueAt: Instant?, serverTime: Int64, workerNow: Int64, uptime: Int64
    ) {
        guard let known = entries[room], known.sequence <= sequence else { return }
        guard let dueAt else {
            set(room, nil)
            return
        }
        if dueAt.milliseconds > workerNow {
            arm(room, sequence: sequence, at: dueAt.milliseconds)
        } else if dueAt.milliseconds > serverTime {
            let left = max(dueAt.milliseconds - serverTime, Self.shortestWait)
            retry(room, sequence: sequence, times: 0, since: uptime, at: uptime + left)
        }
        // Else the worker contradicts itself, and the next retry will do.
    }

    /// Somebody else fired these rooms: they count as fired here, too.
    package mutating func noteFired(_ rooms: [RoomID], workerNow: Int64, uptime: Int64) {
        for room in rooms {
            guard let entry = entries[room], case .armed(let at) = entry.state, at <= workerNow + 1_000 else {
                continue
            }
            retry(room, sequence: entry.sequence, times: 1, since: uptime, at: uptime + Self.firstRetry)
        }
    }

    // MARK: Firing

    /// The rooms to fire now, at most `limit`; each goes to the retry list.
    package mutating func takeDue(workerNow: Int64, uptime: Int64, limit: Int) -> [RoomID] {
        var due: [RoomID] = []
        while due.count < limit, let alarm = retries.takeDue(at: uptime) {
            guard let entry = entries[alarm.room], entry.ticket == alarm.ticket,
                case .fired(let times, let since) = entry.state
            else { continue }
            due.append(alarm.room)
            fired(alarm.room, entry, times: times + 1, since: times == 0 ? uptime : since, uptime: uptime)
        }
        while due.count < limit, let alarm = deadlines.takeDue(at: workerNow) {
            guard let entry = entries[alarm.room], entry.ticket == alarm.ticket, case .armed = entry.state
            else {
                continue
            }
            due.append(alarm.room)
            if case .armed(let at) = entry.state { lateness.observe(milliseconds: max(workerNow - at, 0)) }
            fired(alarm.room, entry, times: 1, since: uptime, uptime: uptime)
        }
        return due
    }

    /// Milliseconds until something is due; nil where nothing is. Stale alarms may make it too short, never too long.
    package func wait(workerNow: Int64, uptime: Int64) -> Int64? {
        let waits = [deadlines.earliest.map { $0 - workerNow }, retries.earliest.map { $0 - uptime }]
        return waits.compactMap { $0 }.min().map { max($0, 0) }
    }

    private mutating func set(_ room: RoomID, _ entry: Entry?) {
        if entries[room]?.isOverdue == true { overdue -= 1 }
        if entry?.isOverdue == true { overdue += 1 }
        if entries[room]?.unansweredSince != nil { unanswered -= 1 }
        if let since = entry?.unansweredSince {
            if unanswered == 0 { unansweredSince = since }
            unanswered += 1
        }
        entries[room] = entry
    }

    private mutating func fired(_ room: RoomID, _ entry: Entry, times: Int, since: Int64, uptime: Int64) {
        let delay = min(Self.firstRetry << Int64(min(max(times - 1, 0), 8)), Self.longestRetry)
        retry(room, sequence: entry.sequence, times: times, since: since, at: uptime + delay)
    }

    private mutating func arm(_ room: RoomID, sequence: Int64, at instant: Int64) {
        set(room, Entry(sequence: sequence, state: .armed(instant), ticket: nextTicket))
        deadlines.add(Alarm(room: room, ticket: nextTicket), at: instant)
        nextTicket += 1
        // Sessions may be far shorter than planned: their alarms must not stay for a year.
        if deadlines.count > 2 * entries.count + 1_024 {
            deadlines.keep { [entries] alarm in entries[alarm.room]?.ticket == alarm.ticket }
        }
    }

    private mutating func retry(_ room: RoomID, sequence: Int64, times: Int, since: Int64, at uptime: Int64) {
        set(room, Entry(sequence: sequence, state: .fired(times: times, since: since), ticket: nextTicket))
        retries.add(Alarm(room: room, ticket: nextTicket), at: uptime)
        nextTicket += 1
    }
}
