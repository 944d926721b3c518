package import AMQP
import Contract
import Metrics
import RoomCore
package import Service
package import Store

/// The worker: the only process that changes rooms, numbers their events and publishes them.
///
/// One thread drives it: `handle` takes what has arrived, `run` does one batch of work. It does no waiting and reads no
/// clock but the one it was given, so a simulation can drive it as well as a thread.
///
///     draining ──► overdue ──► serving ──► stopping ──► stopped
///        ▲  outbox    overdue     │ commands,
///        │  first     rooms       │ ticks
///        └────────────────────────┘ after the store has failed and works again, for all rooms or for one
///
/// What is promised and where it is kept:
///
/// | promise | kept by |
/// | --- | --- |
/// | nothing is told that is not durable | `commit` comes before everything that is sent |
/// | acknowledged last | `Jobs` |
/// | events in order, again until confirmed | `OutboxPublisher` |
/// | replies and dead letters again until confirmed | `ReplyPublisher` |
/// | a backlog of commands delays no window | `Intake` |
/// | a room that cannot be read or written stops no other | `Aside`, `StoreHealth` |
/// | each shard is one worker's, and moves with all that is in hand | `LeaseKeeper`, `Shards` |
/// | a message that kills the worker is isolated | `CrashGuard` |
package final class Worker {
    package enum Input: Sendable {
        case consumer(LinkEvent)
        case publisher(LinkEvent)
        case backup(BackupOrder)
        /// Finish what is in hand and stop.
        case stop
    }

    enum Phase: Equatable {
        /// Takes over the outbox, from a position on.
        case draining(after: Int64)
        /// Brings overdue rooms up to date, page by page.
        case overdue(after: RoomID?)
        case serving
        /// Finishes what is in hand, until a point of the monotonic clock.
        case stopping(until: Int64)
        case stopped
    }

    let store: any RoomStore
    /// The store, where several workers share it; nil where this one has it for itself.
    let shared: (any SharedStore)?
    let consumer: any LinkControl
    let publisher: any LinkControl
    let clock: any WallClock
    let log: Log
    let settings: WorkerSettings
    let identity: RunRow
    /// Nanoseconds of the monotonic clock, to measure what a call of the store takes; decides nothing.
    let stopwatch: @Sendable () -> UInt64

    var phase = Phase.draining(after: 0)
    /// True where only the outbox is read again, because a commit for one room is in doubt: nothing else was missed.
    var servesAfterDraining = false
    /// How often in turn the search for overdue rooms has failed.
    var searchFailures = 0
    /// Whether it was said that the store's log stays where it is.
    var saidLogStays = false
    var intake = Intake()
    /// Rooms that the store fails on while it works for others.
    var aside = Aside()
    var jobs = Jobs()
    var outbox: OutboxPublisher
    var replies = ReplyPublisher(.droppedWhenRefused)
    var letters = ReplyPublisher(.untilTaken)
    var guardian: CrashGuard
    var health = StoreHealth()
    var links = LinkStates()
    /// Positions that are done with and still stand in the outbox; deleted with the next commit.
    var published: [Int64] = []
    var publishedAt: Int64 = 0
    var pruneAt: Int64 = 0
    /// When the topology is declared again.
    var topologyAt: Int64 = 0
    let backups: BackupDesk
    var clockSteps = ClockSteps()
    /// When anything was last acknowledged, by channel.
    var acknowledgedAt: [Int: Int64] = [:]
    var shards: Shards
    var leases = LeaseKeeper()
    var storeClock = StoreClock()
    /// Whether it was said that a worker with another number of shards is there.
    var saidOtherShards = false
    /// When what others left behind is looked for again.
    var inheritAt: Int64 = 0
    /// The monotonic clock when `run` was last called.
    var lastUptime: Int64 = 0
    package internal(set) var counters = Counters()
    var meters = WorkerMeters()
    /// Set once: the worker's database has a newer or another state that only a restart can read.
    package internal(set) var fatal: StoreError?

    package init(
        store: any RoomStore, consumer: any LinkControl, publisher: any LinkControl, clock: any WallClock,
        log: Log,
        settings: WorkerSettings, identity: RunRow, crashedRuns: [String],
        outboxLimits: OutboxPublisher.Limits = OutboxPublisher.Limits(),
        stopwatch: @escaping @Sendable () -> UInt64 = { 0 }
    ) {
        self.store = store
        shared = store as? any SharedStore
        self.consumer = consumer
        self.publisher = publisher
        self.clock = clock
        self.log = log
        self.settings = settings
        self.identity = identity
        self.stopwatch = stopwatch
        shards = Shards(count: settings.topology.shards)
        outbox = OutboxPublisher(limits: outboxLimits)
        guardian = CrashGuard(crashedRuns: crashedRuns, attempts: settings.attempts)
        backups = BackupDesk(source: store as? any BackupSource, clock: clock, log: log)
    }

    package var isStopped: Bool { phase == .stopped }

    /// The clock, as rules take it: a shared store's, as far as it is known.
    var now: Instant { Instant(milliseconds: clock.nowMilliseconds() &+ storeClock.offset) }

    // MARK: Driving

    /// Takes what has arrived. Quick: the work is done by `run`.
    package func handle(_ inputs: [Input], at uptime: Int64) {
        if let step = clockSteps.look(wall: clock.nowMilliseconds(), uptime: uptime) {
            log.warning("the clock was stepped or the machine suspended", ["stepMs": step])
        }
        for input in inputs {
            switch input {
            case .consumer(let event): handleConsumer(event, at: uptime)
            case .publisher(let event): handlePublisher(event, at: uptime)
            case .backup(let order): takeBackup(order)
            case .stop: beginStop(at: uptime)
            }
        }
    }

    /// Does one batch of whatever there is to do. Returns after how many milliseconds it wants to run again, if nothing
    /// arrives before; 0 where more work is at hand.
    package func run(at uptime: Int64) -> Int64 {
        passTime(at: uptime)
        collectProgress()
        keepLease(at: uptime)
        tendShards(at: uptime)
        var hasMore = false
        if health.isFailing {
            tryStore(at: uptime)
        } else {
            switch phase {
            case .draining(let position): hasMore = drainOutbox(after: position)
            case .overdue(let last): hasMore = advanceOverdue(after: last, at: uptime)
            case .serving: hasMore = serve(at: uptime)
            case .stopping(let end): continueStop(until: end, at: uptime)
            case .stopped: return 1_000
            }
        }
        collectProgress()
        send(at: uptime)
        moveLog()
        markPublished(at: uptime)
        inherit(at: uptime)
        prune(at: uptime)
        declareTopology(at: uptime)
        backups.step()
        if hasMore || backups.isCopying { return 0 }
        if case .stopping = phase { return 20 }
        if shards.isHandingOver { return 20 }
        let wait: Int64 =
            outbox.held > 0 || !replies.isEmpty || !letters.isEmpty || !published.isEmpty
                || health.isFailing || !aside.isEmpty
            ? 100 : 1_000
        return leases.roster == nil ? wait : min(wait, max(leases.rest(at: uptime), 100))
    }

    /// Publishes what is ready and acknowledges what is settled.
    func send(at uptime: Int64) {
        if let generation = links.publisher[PublisherChannel.events] {
            let publications = outbox.next(at: uptime).map { sending in
                let properties = sending.event.draft.properties
                return Publication(
                    id: sending.id, exchange: settings.topology.eventsExchange,
                    routingKey: properties.type ?? .empty, mandatory: false, properties: properties,
                    body: sending.event.draft.body)
            }
            if !publications.isEmpty {
                publisher.publish(publications, on: PublisherChannel.events, generation: generation)
            }
        }
        if let generation = links.publisher[PublisherChannel.replies] {
            let publications = replies.next(at: uptime)
            if !publications.isEmpty {
                publisher.publish(publications, on: PublisherChannel.replies, generation: generation)
            }
        }
        if let generation = links.publisher[PublisherChannel.letters] {
            let publications = letters.next(at: uptime)
            if !publications.isEmpty {
                publisher.publish(publications, on: PublisherChannel.letters, generation: generation)
            }
        }
        acknowledgeFinished()
    }

    func acknowledgeFinished() {
        for (channel, tags) in jobs.takeFinished().sorted(by: { $0.key < $1.key }) {
            consumer.acknowledge(tags, on: channel)
            acknowledgedAt[channel] = lastUptime
        }
        let arrivals = jobs.takeArrivals()
        guard !arrivals.isEmpty else { return }
        // Not `lastUptime`, which was before the commit.
        let uptime = max(Int64(stopwatch() / 1_000_000), lastUptime)
        for arrival in arrivals { meters.commandLatency.observe(milliseconds: uptime - arrival) }
    }
}

/// What the worker has done, for its state and the metrics.
package struct Counters: Sendable {
    package var applied: Int64 = 0
    package var refused: Int64 = 0
    package var repeated: Int64 = 0
    package var events: Int64 = 0
    package var announced: Int64 = 0
    package var deadLettered: Int64 = 0
    package var batches: Int64 = 0
    package var passedOver: Int64 = 0
    package var droppedReplies: Int64 = 0
    package var storeFailures: Int64 = 0
    /// Batches that met a room which somebody else had changed meanwhile.
    package var conflicts: Int64 = 0
}
