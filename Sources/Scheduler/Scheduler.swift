package import AMQP
package import Contract
import Metrics
import RoomCore
package import Service

/// The scheduler: fires each room's window and end at its instant, and owns no truth.
///
/// It learns the due instants from a snapshot and from the session events since, publishes a tick for what is due, and
/// fires again until an answer or an event shows the worker's newer state. Any number of schedulers may run: one that
/// has just heard one with a smaller id waits a moment and drops what that one has fired.
///
/// Who fires a window learns from the worker's answer when the room is due next, hundreds of rooms in one message, and
/// does not listen to the events of windows. One that waits for another gets no answers, so it does: see `followWindows`.
///
/// One thread drives it: `handle` takes what has arrived, `run` does what is due and says how long to wait.
package final class Scheduler {
    package enum Input: Sendable {
        case consumer(LinkEvent)
        case publisher(LinkEvent)
        case stop
    }

    /// What the scheduler sends.
    package struct Outlet: Sendable {
        package let publish: @Sendable (_ publications: [Publication], _ generation: UInt64) -> Void
        /// Opens or closes a channel of the listening connection.
        package let listen: @Sendable (_ channel: Int, _ isWanted: Bool) -> Void

        package init(
            publish: @escaping @Sendable ([Publication], UInt64) -> Void,
            listen: @escaping @Sendable (Int, Bool) -> Void
        ) {
            self.publish = publish
            self.listen = listen
        }
    }

    enum SnapshotState {
        case idle(nextAt: Int64)
        /// A page is to be asked for.
        case ready(after: RoomID?, at: Int64)
        /// A page was asked for under this correlation.
        case asked(after: RoomID?, correlation: UInt64, at: Int64)
    }

    package let id: String
    let topology: Topology
    let outlet: Outlet
    let clock: any WallClock
    let log: Log
    /// The name of the queue on which answers come, anew with each connection.
    let answersQueue: @Sendable () -> ShortString?

    package internal(set) var agenda = Agenda()
    var offset = ClockOffset()
    private(set) var steps = ClockSteps()
    var meters = SchedulerMeters()
    var snapshot = SnapshotState.idle(nextAt: .max)
    var isSnapshotWanted = false
    var publishing: UInt64?
    private(set) var listening: Set<Int> = []
    private var nextCorrelation: UInt64 = 1
    /// When each question that is still unanswered was sent, by this wall clock.
    private var sentAt: [UInt64: Int64] = [:]
    private var sentOrder: [UInt64] = []
    /// When a scheduler with a smaller id was last heard, by the monotonic clock.
    private var elderHeardAt: Int64?
    /// Whether the events of windows are listened to.
    private var followsWindows = false
    /// What a standby is holding back, oldest first.
    private var heldBack: [(rooms: [RoomID], until: Int64)] = []
    private(set) var isBlocked = false
    /// True where the snapshot cannot wait: events were missed.
    var isSnapshotUrgent = false
    /// Rooms to ask for at a time.
    var pageSize = Scheduler.pageSize
    /// Until when snapshots follow each other quickly, by the monotonic clock: the worker's clock is in doubt.
    var clockDoubtUntil = Int64.min
    /// Whether what lives is known.
    var isSnapshotComplete = false
    /// Whether it was said that no worker answers.
    var isUnanswered = false
    /// Whether it was said that ticks are not answered.
    private var isFiringInVain = false
    private var lastError: [String: AMQPError] = [:]
    package private(set) var isStopped = false

    private static let standbyDelay: Int64 = 100
    private static let elderMemory: Int64 = 60_000
    private static let keptCorrelations = 1_024

    package init(
        id: String, topology: Topology, outlet: Outlet, answersQueue: @escaping @Sendable () -> ShortString?,
        clock: any WallClock, log: Log
    ) {
        self.id = id
        self.topology = topology
        self.outlet = outlet
        self.answersQueue = answersQueue
        self.clock = clock
        self.log = log
    }

    // MARK: Driving

    package func handle(_ inputs: [Input], at uptime: Int64) {
        for input in inputs {
            switch input {
            case .consumer(let event): handleConsumer(event, at: uptime)
            case .publisher(let event): handlePublisher(event)
            case .stop: isStopped = true
            }
        }
    }

    /// Fires what is due. Returns how many milliseconds to wait, at most a second: the wall clock is read anew after
    /// each wait, so that steps and suspends are noticed.
    package func run(at uptime: Int64) -> Int64 {
        let wall = clock.nowMilliseconds()
        if let step = steps.look(wall: wall, uptime: uptime) {
            offset.reset()
            // Until an answer says how far the clocks are apart now, rooms would be fired by the plain clock.
            wantSnapshot(at: uptime)
            log.warning("the clock was stepped or the machine suspended", ["stepMs": step])
        }
        continueSnapshot(at: uptime)
        followWindows(at: uptime)
        releaseHeldBack(at: uptime)
        guard isConnected else { return 1_000 }
        let workerNow = wall + offset.milliseconds
        while true {
            let due = agenda.takeDue(workerNow: workerNow, uptime: uptime, limit: 10_000)
            guard !due.isEmpty else { break }
            if isStandby(at: uptime) { holdBack(due, at: uptime) } else { fire(due) }
        }
        sayWhetherAnswered(wall: wall, uptime: uptime)
        let wait = agenda.wait(workerNow: workerNow, uptime: uptime) ?? 1_000
        let held = heldBack.first.map { max($0.until - uptime, 0) } ?? 1_000
        return min(wait, held, snapshotWait(at: uptime), 1_000)
    }

    /// Blocked counts as not connected: what is handed over then would only pile up.
    var isConnected: Bool {
        publishing != nil && !isBlocked && listening.isSuperset(of: SchedulerChannel.all)
    }

    // MARK: Firing

    private func fire(_ rooms: [RoomID]) {
        guard let generation = publishing, let queue = answersQueue() else { return }
        let publications = Tick.split(scheduler: id, rooms: rooms).map { tick in
            let correlation = newCorrelation()
            return Publication(
                id: correlation, exchange: topology.ticks, routingKey: .empty, mandatory: false,
                properties: question(correlation, replyTo: queue), body: tick.encode())
        }
        log.debug("fired", ["rooms": rooms.count, "ticks": publications.count])
        meters.firedRooms += Int64(rooms.count)
        meters.ticks += Int64(publications.count)
        outlet.publish(publications, generation)
    }

    /// One line when rooms begin to be fired in vain, and one when all of them have been answered.
    private func sayWhetherAnswered(wall: Int64, uptime: Int64) {
        guard isFiringInVain != (agenda.unanswered > 0) else { return }
        isFiringInVain.toggle()
        guard isFiringInVain else { return log.info("all ticks are answered again") }
        let since = Instant(milliseconds: wall - (uptime - agenda.unansweredSince))
        log.warning(
            "ticks stay unanswered: rooms that are due wait, and are fired again and again",
            ["rooms": agenda.overdue, "since": TimeText.text(since)])
    }

    /// A new correlation; its time of sending is kept.
    func newCorrelation() -> UInt64 {
        let correlation = nextCorrelation
        nextCorrelation += 1
        sentAt[correlation] = clock.nowMilliseconds()
        sentOrder.append(correlation)
        if sentOrder.count > Self.keptCorrelations { sentAt[sentOrder.removeFirst()] = nil }
        return correlation
    }

    func question(_ correlation: UInt64, replyTo queue: ShortString) -> Properties {
        Properties(
            contentType: "application/json", deliveryMode: 1, correlationID: ShortString("\(correlation)"),
            replyTo: queue, appID: "overtime")
    }

    private func isStandby(at uptime: Int64) -> Bool {
        elderHeardAt.map { uptime - $0 < Self.elderMemory } ?? false
    }

    /// A standby has to hear of the windows that its elder fires, whom the worker answers.
    private func followWindows(at uptime: Int64) {
        let isWanted = isStandby(at: uptime)
        guard isWanted != followsWindows else { return }
        followsWindows = isWanted
        outlet.listen(SchedulerChannel.windows, isWanted)
    }

    private func holdBack(_ rooms: [RoomID], at uptime: Int64) {
        heldBack.append((rooms, uptime + Self.standbyDelay))
    }

    private func releaseHeldBack(at uptime: Int64) {
        let due = heldBack.prefix { uptime >= $0.until }
        heldBack.removeFirst(due.count)
        let rooms = due.flatMap(\.rooms)
        if !rooms.isEmpty, isConnected { fire(rooms) }
    }

    // MARK: The connections

    private func handleConsumer(_ event: LinkEvent, at uptime: Int64) {
        switch event {
        case .channelOpened(let channel, _):
            listening.insert(channel)
            lastError[channelName(channel)] = nil
            // What came before a channel was open is in the snapshot only; windows that were missed can wait for it.
            if channel == SchedulerChannel.windows {
                if case .idle = snapshot { snapshot = .idle(nextAt: uptime) }
            } else if listening.isSuperset(of: SchedulerChannel.all) {
                wantSnapshot(at: uptime)
            }
            // An exchange that was made anew knows of neither queue.
            if channel == SchedulerChannel.events, followsWindows {
                for isWanted in [false, true] { outlet.listen(SchedulerChannel.windows, isWanted) }
            }
        case .channelClosed(let channel, _, let error, _):
            listening.remove(channel)
            guard let error, isNews(error, of: channelName(channel)) else { return }
            log.warning("listening ended", ["to": channelName(channel), "error": error.description])
        case .delivery(SchedulerChannel.events, let delivery),
            .delivery(SchedulerChannel.windows, let delivery):
            guard case .bytes(let body) = delivery.body, let fact = SessionFact.decode(body) else { return }
            var dueAt: Instant?
            if case .at(let instant) = fact.due { dueAt = instant }
            agenda.learn(room: fact.room, sequence: fact.sequence, dueAt: dueAt)
        case .delivery(SchedulerChannel.ticks, let delivery):
            hear(delivery, at: uptime)
        case .delivery(_, let delivery):
            receiveAnswer(delivery, at: uptime)
        default:
            logConnection(event, "consumer")
        }
    }

    private func handlePublisher(_ event: LinkEvent) {
        switch event {
        case .channelOpened(_, let generation):
            publishing = generation
            isSnapshotWanted = true
            lastError["ticks out"] = nil
        case .channelClosed(_, _, let error, _):
            publishing = nil
            guard let error, isNews(error, of: "ticks out") else { return }
            log.warning("publishing channel closed", ["error": error.description])
        case .blocked:
            isBlocked = true
            logConnection(event, "publisher")
        case .unblocked:
            isBlocked = false
            logConnection(event, "publisher")
        case .connected, .disconnected:
            // A block ends with its connection, and nobody says so.
            isBlocked = false
            logConnection(event, "publisher")
        default: break
        }
    }

    private func logConnection(_ event: LinkEvent, _ name: String) {
        switch event {
        case .connected(let version, _, let node):
            meters.connections[name, default: ConnectionMeter()].connected()
            log.info("connected", ["connection": name, "broker": version, "node": node])
            lastError[name] = nil
        case .disconnected(let error, let delay):
            meters.connections[name]?.disconnected()
            guard isNews(error, of: name) else { return }
            log.warning(
                "disconnected", ["connection": name, "error": error.description, "retryInMs": delay])
        case .blocked(let reason):
            log.warning("blocked by the broker: ticks wait", ["connection": name, "reason": reason])
        case .unblocked:
            log.info("unblocked", ["connection": name])
        default: break
        }
    }

    /// Each failure is said once, until what failed has worked again.
    private func isNews(_ error: AMQPError, of name: String) -> Bool {
        defer { lastError[name] = error }
        return lastError[name] != error
    }

    func channelName(_ channel: Int) -> String {
        switch channel {
        case SchedulerChannel.events: "events"
        case SchedulerChannel.ticks: "ticks"
        case SchedulerChannel.windows: "windows"
        default: "answers"
        }
    }

    /// Another scheduler's tick, or one's own.
    private func hear(_ delivery: Delivery, at uptime: Int64) {
        guard case .bytes(let body) = delivery.body, let tick = Tick.decode(body), tick.scheduler != id else {
            return
        }
        if tick.scheduler.utf8.lexicographicallyPrecedes(id.utf8) { elderHeardAt = uptime }
        // Who waits for nobody does not hear what became of others' ticks: it goes by its own.
        guard isStandby(at: uptime) else { return }
        let workerNow = clock.nowMilliseconds() + offset.milliseconds
        agenda.noteFired(tick.rooms, workerNow: workerNow, uptime: uptime)
        guard !heldBack.isEmpty else { return }
        let fired = Set(tick.rooms)
        for index in heldBack.indices { heldBack[index].rooms.removeAll(where: fired.contains) }
    }

    // MARK: Answers

    private func receiveAnswer(_ delivery: Delivery, at uptime: Int64) {
        guard case .bytes(let body) = delivery.body, let text = delivery.properties.correlationID?.string,
            let correlation = UInt64(text)
        else { return }
        let received = clock.nowMilliseconds()
        let sent = sentAt[correlation]
        if case .asked(_, correlation, _) = snapshot {
            receivePage(body, sent: sent, received: received, at: uptime)
        } else if let answer = TickAnswer.decode(body) {
            learn(answer.serverTime, sent: sent, received: received, at: uptime)
            noteAnswer()
            let workerNow = received + offset.milliseconds
            for row in answer.rooms {
                agenda.learnAnswer(
                    room: row.room, sequence: row.sequence, dueAt: row.nextDueAt,
                    serverTime: answer.serverTime.milliseconds, workerNow: workerNow, uptime: uptime)
            }
        }
    }

    func learn(_ serverTime: Instant, sent: Int64?, received: Int64, at uptime: Int64) {
        guard let sent else { return }
        if offset.learn(serverTime: serverTime.milliseconds, sent: sent, received: received) {
            doubtClocks(at: uptime)
        }
    }
}

/// The channels of the scheduler's listening connection.
package enum SchedulerChannel {
    package static let events = 0
    package static let ticks = 1
    package static let answers = 2
    /// Looks for the exchanges that are listened to; see `TopologyWatch`.
    static let watch = 3
    /// The events of windows; open in a standby only.
    static let windows = 4
    static let all: Set<Int> = [events, ticks, answers]
}
