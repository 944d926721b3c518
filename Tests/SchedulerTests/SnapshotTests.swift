import AMQP
import Contract
import RoomCore
import Testing

@testable import Scheduler

@Suite("The snapshot")
struct SnapshotTests {
    private static func many(_ count: Int) -> [RoomID: [Int64]] {
        Dictionary(uniqueKeysWithValues: (0..<count).map { (RoomID("r\($0)"), [600_000]) })
    }

    @Test("Is read page by page, first when both connections stand", arguments: [true, false])
    func pages(publisherFirst: Bool) throws {
        let bench = try SchedulerBench()
        for (room, dues) in Self.many(1_200) {
            bench.worker.rooms[room] = WorkerDouble.Known(
                sequence: 3, dues: dues.map { SchedulerBench.noon + $0 })
        }
        if publisherFirst { bench.connectPublisher() } else { bench.connectConsumer() }
        bench.pass(500)
        #expect(bench.queries.isEmpty)
        if publisherFirst { bench.connectConsumer() } else { bench.connectPublisher() }
        bench.pass(50)
        #expect(bench.queries.count == 3)
        #expect(bench.scheduler.agenda.count == 1_200)
        #expect(bench.logFile.lines(containing: "firing").count == 1)
    }

    @Test("Is read again every half minute, without haste")
    func periodically() throws {
        let bench = try SchedulerBench.ready(Self.many(1_200))
        bench.forget()
        bench.pass(28_000)
        #expect(bench.queries.isEmpty)
        bench.pass(3_000)
        #expect(bench.queries.count == 3)
        let at = bench.queries.map(\.at)
        #expect(at[1] - at[0] >= 100 && at[2] - at[1] >= 100)
    }

    @Test("Is read again after each reconnect, at once, and tells what happened meanwhile")
    func afterReconnect() throws {
        let bench = try SchedulerBench.ready(Self.many(1_200))
        bench.loseConsumer()
        bench.worker.rooms["unheard"] = WorkerDouble.Known(sequence: 3, dues: [SchedulerBench.noon + 60_000])
        bench.pass(10_000)
        bench.forget()
        bench.connectConsumer()
        bench.pass(50)
        #expect(bench.queries.count == 3)
        #expect(bench.scheduler.agenda.count == 1_201)
        bench.losePublisher()
        bench.connectPublisher()
        bench.pass(50)
        #expect(bench.queries.count == 6)
        bench.pass(60_000)
        #expect(bench.announced("unheard").count == 1)
    }

    @Test("Also after one of its queues was lost by itself")
    func afterCancel() throws {
        let bench = try SchedulerBench.ready(["r": [60_000]])
        bench.forget()
        bench.handle(
            .consumer(
                .channelClosed(
                    SchedulerChannel.events, generation: 1,
                    AMQPError(scope: .channel, kind: .consumerCancelled, text: "gone"), unknown: [])))
        bench.pass(2_000)
        bench.handle(.consumer(.channelOpened(SchedulerChannel.events, generation: 2)))
        bench.pass(50)
        #expect(bench.queries.count == 1)
        #expect(bench.logFile.lines(containing: "events").count == 1, "named, not numbered")
    }

    @Test("Without an answer it asks again every five seconds, and says once that nobody answers")
    func noAnswer() throws {
        let bench = try SchedulerBench()
        bench.latency = nil
        bench.connect()
        bench.pass(60_000)
        #expect(bench.queries.map { $0.at - SchedulerBench.noon } == (0...12).map { $0 * 5_000 })
        #expect(bench.logFile.lines(containing: "no worker answers").count == 1)
        bench.latency = 2
        bench.worker.rooms["r"] = WorkerDouble.Known(sequence: 1, dues: [SchedulerBench.noon + 70_000])
        bench.pass(20_000)
        #expect(bench.fired("r") == [70_000])
        #expect(bench.logFile.lines(containing: "no worker answers").count == 1)
    }

    @Test("A worker that takes longer than five seconds is understood all the same")
    func slowWorker() throws {
        let bench = try SchedulerBench()
        bench.latency = 12_000
        bench.worker.rooms["r"] = WorkerDouble.Known(sequence: 1, dues: [SchedulerBench.noon + 60_000])
        bench.connect()
        bench.pass(30_000)
        #expect(bench.scheduler.agenda.count == 1)
    }

    @Test("An answer to an older connection's question is no page of this one")
    func oldAnswer() throws {
        let bench = try SchedulerBench()
        bench.latency = nil
        bench.connect()
        bench.pass(10)
        let old = try #require(bench.queries.first?.publication)
        bench.loseConsumer()
        bench.connectConsumer()
        bench.pass(10)
        let row = LiveRoom(
            room: "ghost", session: 1, state: .running, startedAt: nil, endsAt: nil,
            nextDueAt: Instant(milliseconds: SchedulerBench.noon), connected: 0, extensions: 0, sequence: 1)
        bench.handle(
            .answer(
                old.properties.correlationID,
                QueryReplyEncoder.rooms(
                    [row], next: nil, serverTime: Instant(milliseconds: SchedulerBench.noon))))
        #expect(bench.scheduler.agenda.count == 0)
        #expect(bench.logFile.lines(containing: "firing").isEmpty)
    }
}
