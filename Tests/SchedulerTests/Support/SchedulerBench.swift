import AMQP
import Contract
import RoomCore
import Synchronization

@testable import Scheduler

/// A scheduler with its clocks, and a worker that answers after a while.
final class SchedulerBench {
    static let noon: Int64 = 1_795_953_600_000
    static let lost = AMQPError(scope: .connection, kind: .socketClosed, text: "gone")

    struct Sent {
        let publication: Publication
        let generation: UInt64
        /// The scheduler's wall clock.
        let at: Int64

        var tick: Tick? { Tick.decode(publication.body) }
        var isQuery: Bool { publication.exchange == "overtime.queries" }
    }

    private final class Box: Sendable {
        let sent = Mutex<[(Publication, UInt64)]>([])
        let wishes = Mutex<[(channel: Int, isWanted: Bool)]>([])
    }

    let clock = TestClock(SchedulerBench.noon)
    let logFile = LogFile()
    let scheduler: Scheduler
    var uptime: Int64 = 7_000_000
    var worker = WorkerDouble()
    /// There and back; nil where no worker answers.
    var latency: Int64? = 2
    private(set) var sent: [Sent] = []
    private(set) var runs = 0
    private(set) var longestWait: Int64 = 0
    private let box = Box()
    private var requests: [(at: Int64, publication: Publication)] = []
    private var answers: [(at: Int64, input: Scheduler.Input)] = []
    private var generation: UInt64 = 0

    init(id: String = "m") throws {
        let box = box
        scheduler = Scheduler(
            id: id, topology: try Topology(),
            outlet: Scheduler.Outlet(
                publish: { publications, generation in
                    box.sent.withLock { $0 += publications.map { ($0, generation) } }
                }, listen: { channel, isWanted in box.wishes.withLock { $0.append((channel, isWanted)) } }),
            answersQueue: { "overtime.own.scheduler.x" }, clock: clock, log: logFile.log)
    }

    /// One that is connected and has read its snapshot.
    static func ready(id: String = "m", _ rooms: [RoomID: [Int64]] = [:]) throws -> SchedulerBench {
        let bench = try SchedulerBench(id: id)
        for (room, dues) in rooms {
            bench.worker.rooms[room] = WorkerDouble.Known(sequence: 3, dues: dues.map { noon + $0 })
        }
        bench.connect()
        bench.pass(1_000 + Int64(rooms.count / 500) * 200)
        return bench
    }

    func handle(_ inputs: Scheduler.Input...) { scheduler.handle(inputs, at: uptime) }

    func connect() {
        connectPublisher()
        connectConsumer()
    }

    func connectConsumer() {
        handle(.consumer(.connected(brokerVersion: "4", properties: Table())))
        for channel in 0..<3 { handle(.consumer(.channelOpened(channel, generation: 1))) }
    }

    func connectPublisher() {
        generation += 1
        handle(.publisher(.connected(brokerVersion: "4", properties: Table())))
        handle(.publisher(.channelOpened(0, generation: generation)))
    }

    func loseConsumer() {
        for channel in 0..<3 {
            handle(
                .consumer(.channelClosed(channel, generation: 1, Self.lost, unknown: [])))
        }
        handle(.consumer(.disconnected(Self.lost, retryInMilliseconds: 100)))
    }

    func losePublisher() {
        handle(.publisher(.channelClosed(0, generation: generation, Self.lost, unknown: [])))
        handle(.publisher(.disconnected(Self.lost, retryInMilliseconds: 100)))
    }

    /// One run; what it sent goes to the worker.
    @discardableResult
    func run() -> Int64 {
        let wait = scheduler.run(at: uptime)
        runs += 1
        longestWait = max(longestWait, wait)
        let new = box.sent.withLock { sent in
            defer { sent = [] }
            return sent
        }
        for (publication, generation) in new {
            sent.append(
                Sent(publication: publication, generation: generation, at: clock.nowMilliseconds()))
            if let latency { requests.append((uptime + latency / 2, publication)) }
        }
        return wait
    }

    /// Lets time pass as the process does: asleep as long as `run` said, unless something arrives.
    func pass(_ milliseconds: Int64) {
        let end = uptime + milliseconds
        while true {
            deliver()
            let wait = max(run(), 1)
            guard uptime < end else { return }
            let arrivals = requests.map(\.at) + answers.map(\.at)
            let next = min(end, uptime + wait, max(uptime + 1, arrivals.min() ?? .max))
            clock.advance(next - uptime)
            uptime = next
        }
    }

    private func deliver() {
        let arrived = requests.filter { $0.at <= uptime }
        requests.removeAll { $0.at <= uptime }
        for (_, publication) in arrived {
            let inputs = worker.receive(publication, wall: clock.nowMilliseconds())
            answers += inputs.map { (uptime + (latency ?? 0) - (latency ?? 0) / 2, $0) }
        }
        let due = answers.filter { $0.at <= uptime }
        answers.removeAll { $0.at <= uptime }
        scheduler.handle(due.map(\.input), at: uptime)
    }

    /// The instants at which a room was fired, after noon by the scheduler's clock.
    func fired(_ room: RoomID) -> [Int64] {
        sent.filter { $0.tick?.rooms.contains(room) == true }.map { $0.at - Self.noon }
    }

    /// Whether the events of windows were listened to, one mention a change.
    var followed: [Bool] {
        box.wishes.withLock { $0.filter { $0.channel == SchedulerChannel.windows }.map(\.isWanted) }
    }

    var queries: [Sent] { sent.filter(\.isQuery) }
    var ticks: [Tick] { sent.compactMap(\.tick) }
    /// When the worker announced a room's instants, after noon by the worker's clock.
    func announced(_ room: RoomID) -> [Int64] {
        worker.announced.filter { $0.room == room }.map { $0.at - Self.noon }
    }

    func forget() {
        sent = []
        runs = 0
        longestWait = 0
    }
}
