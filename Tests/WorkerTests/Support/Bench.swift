import AMQP
import Contract
import RoomCore
import Store

@testable import Worker

/// A worker on a real store, with its clocks, and a broker played by hand (`Bench+Broker.swift`).
final class Bench {
    static let noon: Int64 = 1_795_953_600_000

    let folder: TemporaryFolder
    let clock = TestClock(Bench.noon)
    let fuse = Fuse()
    let store: FlakyStore
    let logFile: LogFile
    let consumer: FakeLink
    let publisher: FakeLink
    let settings: WorkerSettings
    private let limits: OutboxPublisher.Limits
    private(set) var worker: Worker
    private var runs = 0
    var uptime: Int64 = 5_000_000
    /// What the last `run` asked for.
    private(set) var wait: Int64 = 0
    var broker = FakeBroker()

    init(
        limits: OutboxPublisher.Limits = .init(), prepare: (any RoomStore) throws -> Void = { _ in },
        adjust: (inout WorkerSettings) -> Void = { _ in }
    ) throws {
        folder = try TemporaryFolder()
        logFile = LogFile(folder: folder)
        store = FlakyStore(
            try SQLiteStore(path: folder.file("rooms.db"), startedAt: Instant(milliseconds: Bench.noon)),
            fuse: fuse)
        consumer = FakeLink(fuse: fuse)
        publisher = FakeLink(fuse: fuse)
        var settings = try Bench.settings()
        adjust(&settings)
        self.settings = settings
        self.limits = limits
        try prepare(store.real)
        let identity = Bench.identity(0)
        worker = Worker(
            store: store, consumer: consumer, publisher: publisher, clock: clock, log: logFile.log,
            settings: settings, identity: identity, crashedRuns: try store.real.beginRun(identity),
            outboxLimits: limits)
    }

    static func settings(shards: Int = 1) throws -> WorkerSettings {
        WorkerSettings(
            topology: try Topology(shards: shards), rooms: RoomSettings(), source: "overtime",
            operators: ["ops"], idRetention: .minutes(24 * 60), roomRetention: .minutes(30 * 24 * 60))
    }

    private static func identity(_ number: Int) -> RunRow {
        RunRow(id: "run-\(number)", pid: 1, host: "here", startedAt: Instant(milliseconds: noon))
    }

    /// A worker that has connected and serves.
    static func serving(
        limits: OutboxPublisher.Limits = .init(), adjust: (inout WorkerSettings) -> Void = { _ in }
    ) throws -> Bench {
        let bench = try Bench(limits: limits, adjust: adjust)
        bench.start()
        return bench
    }

    func start() {
        connectConsumer()
        connectPublisher()
        settle()
    }

    /// The worker is gone without a word; another one takes its place.
    func replaceWorker(connecting: Bool = true) throws {
        _ = (consumer.take(), publisher.take())
        broker.forgetConnections()
        fuse.reset()
        runs += 1
        let identity = Bench.identity(runs)
        worker = Worker(
            store: store, consumer: consumer, publisher: publisher, clock: clock, log: logFile.log,
            settings: settings, identity: identity, crashedRuns: try store.real.beginRun(identity),
            outboxLimits: limits)
        if connecting { start() }
    }

    // MARK: Time

    /// One run of the worker, and what the broker answers.
    func turn() {
        wait = worker.run(at: uptime)
        react()
    }

    /// Runs until nothing more happens at this instant.
    func settle() {
        for _ in 0..<2_000 where !worker.isStopped && !fuse.isBlown {
            turn()
            if wait > 0, !broker.hasReacted { return }
        }
    }

    /// Lets both clocks go on.
    func pass(_ milliseconds: Int64, step: Int64 = 100) {
        var left = milliseconds
        while left > 0 {
            let span = min(step, left)
            uptime += span
            clock.advance(span)
            left -= span
            settle()
        }
    }

    func handle(_ inputs: Worker.Input...) { worker.handle(inputs, at: uptime) }

    // MARK: Looking

    func room(_ id: RoomID) throws -> Room? {
        try store.real.load(BatchRequest(rooms: [id])).rooms[id]?.room
    }

    func answer(_ room: RoomID, _ id: CommandID) throws -> StoredAnswer? {
        let key = CommandKey(room: room, id: id)
        return try store.real.load(BatchRequest(keys: [key])).answers[key]
    }

    func outbox() throws -> [OutboxMessage] { try store.real.unpublished(after: 0, limit: 100_000) }

    /// How often the queue of commands has been consumed, so far.
    var generation: Int {
        logFile.lines(containing: "consuming").filter { $0.contains("overtime.commands") }.count
    }

    var replies: [Reply] {
        broker.published.filter { $0.channel == PublisherChannel.replies }
            .compactMap { ReplyDecoder.decode($0.publication.body) }
    }

    var letters: [Publication] {
        broker.published.filter { $0.channel == PublisherChannel.letters }.map(\.publication)
    }

    /// The events published, as `room:sequence`, copies and all.
    var events: [String] {
        broker.published.filter { $0.channel == PublisherChannel.events }
            .map { $0.publication.properties.messageID?.description ?? "?" }
    }

    var eventTypes: [String] {
        broker.published.filter { $0.channel == PublisherChannel.events }
            .map { $0.publication.properties.type?.description ?? "?" }
    }
}
