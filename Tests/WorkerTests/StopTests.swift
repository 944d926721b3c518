import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("Stop")
struct StopTests {
    @Test("Finishes what is in hand, acknowledges it, closes the channels, marks and ends the run")
    func clean() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.settle()
        bench.command("undecided", "join", user: "u")
        bench.handle(.stop)
        bench.settle()
        bench.pass(1_000)
        #expect(!bench.worker.isStopped)
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(200)
        #expect(bench.worker.isStopped)
        #expect(bench.broker.acknowledged == ["o"])
        #expect(bench.broker.consuming.isEmpty)
        #expect(bench.broker.queued[ConsumerChannel.commands]?.map(\.name) == ["undecided"])
        #expect(try bench.outbox().isEmpty)
        #expect(bench.store.calls[.endRun] == 1)
        #expect(bench.logFile.lines(containing: "stopp").count == 2)
    }

    @Test("Waits no longer than the grace; what is left is in the outbox and in the queue")
    func bounded() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.settle()
        bench.handle(.stop)
        bench.pass(4_900)
        #expect(!bench.worker.isStopped)
        bench.pass(200)
        #expect(bench.worker.isStopped)
        #expect(bench.broker.acknowledged.isEmpty)
        #expect(try bench.outbox().count == 1)
        try bench.replaceWorker(connecting: false)
        bench.broker.verdict = { _, _ in .confirm }
        bench.start()
        #expect(bench.broker.acknowledged == ["o"])
        #expect(bench.store.calls[.markAttempts] == nil, "it was no crash")
    }

    @Test("A second stop does not begin anew, and deliveries that still come are left alone")
    func again() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.settle()
        bench.handle(.stop)
        bench.pass(3_000)
        bench.handle(.stop)
        bench.command("late", "open", "q")
        bench.tick("t", ["q"])
        bench.pass(2_200)
        #expect(bench.worker.isStopped)
        #expect(try bench.room("q")?.definition == nil)
        #expect(bench.worker.jobs.count == 1)
    }

    @Test("Refused rooms are not waited for")
    func refusedRooms() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.events ? .refuse : .confirm }
        bench.command("o", "open")
        bench.settle()
        bench.handle(.stop)
        bench.pass(200)
        #expect(bench.worker.isStopped)
        #expect(try bench.outbox().count == 1)
    }

    @Test("The channels are closed a moment after the last acknowledgement, which the broker might forget")
    func acknowledgementsSettle() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        bench.handle(.stop)
        bench.pass(60)
        #expect(bench.broker.acknowledged == ["o"])
        #expect(!bench.worker.isStopped)
        #expect(!bench.broker.consuming.isEmpty)
        bench.pass(80)
        #expect(bench.worker.isStopped)
    }

    @Test("With the store failing it stops all the same, and stays stopped", arguments: [true, false])
    func storeFails(before: Bool) throws {
        let bench = try Bench.serving()
        let fail = { bench.store.failure = { _ in StoreError.io(code: 10, "disk") } }
        if before { fail() }
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.events ? .silence : .confirm }
        bench.command("o", "open")
        bench.settle()
        bench.handle(.stop)
        fail()
        bench.pass(5_200)
        #expect(bench.worker.isStopped)
        bench.query(#"{"query":"rooms","after":null,"limit":5}"#)
        bench.turn()
        #expect(bench.worker.isStopped)
    }

    @Test(
        "A stop in the middle of the start, of an outage or with no broker ends too",
        arguments: ["connecting", "draining", "no broker"])
    func anyMoment(moment: String) throws {
        let bench = try Bench(adjust: { $0.eventBound = moment == "draining" ? 0 : 20_000 })
        if moment == "draining" {
            bench.start()
        } else if moment == "no broker" {
            bench.start()
            bench.command("o", "open")
            bench.losePublisher()
            bench.loseConsumer()
        }
        bench.handle(.stop)
        bench.pass(5_200)
        #expect(bench.worker.isStopped)
    }
}
