import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("A delivery is acknowledged last")
struct AcknowledgementTests {
    @Test(
        "Not before its events and its reply have their confirm, whichever comes last",
        arguments: [true, false])
    func afterEveryConfirm(replyLast: Bool) throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("j", "join", user: "u")
        bench.settle()
        #expect(bench.events == ["r:1", "r:2", "r:3"])
        try #require(bench.broker.outstanding.count == 3)
        if !replyLast { bench.broker.outstanding.reverse() }
        let waiting = bench.broker.outstanding
        for index in waiting.indices {
            #expect(!bench.broker.acknowledged.contains("j"))
            let one = waiting[index]
            bench.handle(.publisher(.confirmed(one.channel, [one.publication.id])))
            bench.broker.outstanding.removeFirst()
            bench.settle()
        }
        #expect(bench.broker.acknowledged == ["o", "j"])
        #expect(bench.broker.faults == [])
    }

    @Test("A refused event counts as an end as well, and a reply that its queue goes on refusing")
    func afterARefusal() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .refuse }
        bench.command("o", "open")
        bench.settle()
        bench.pass(19_000)
        #expect(bench.broker.acknowledged == [])
        bench.pass(2_000)
        #expect(bench.broker.acknowledged == ["o"])
        #expect(bench.worker.counters.droppedReplies == 1)
        #expect(try bench.outbox().count == 1, "the event is safe in the outbox")
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(2_000)
        #expect(try bench.outbox().isEmpty)
    }

    @Test("Nothing is sent or acknowledged before it is durable")
    func durableFirst() throws {
        let bench = try Bench.serving()
        bench.store.commitFailure = { _ in .full(path: "x") }
        bench.command("o", "open")
        bench.settle()
        bench.pass(1_900)
        #expect(bench.broker.published.isEmpty)
        #expect(bench.broker.acknowledged.isEmpty)
    }

    @Test("Without reply_to and without an event it is acknowledged after the commit")
    func nothingOwed() throws {
        let bench = try Bench.serving()
        bench.command("l", "leave", user: "u", replies: false)
        bench.settle()
        #expect(bench.broker.acknowledged == ["l"])
        #expect(try bench.answer("r", "l") != nil)
        #expect(bench.broker.published.isEmpty)
    }

    @Test("Deliveries held back behind a refused event of their room do not wait for it")
    func heldBack() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.events ? .refuse : .confirm }
        bench.command("j", "join", user: "u")
        bench.settle()
        for number in 0..<20 { bench.command("k\(number)", "join", user: "u\(number)") }
        bench.settle()
        #expect(bench.broker.acknowledged.count == 22)
        bench.command("x", "open", "other")
        bench.settle()
        #expect(bench.broker.acknowledged.last == "x")
    }

    @Test("What was in hand when its channel was closed is not acknowledged on the next one")
    func staleTags() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.settle()
        bench.bounceConsumer()
        bench.settle()
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(200)
        #expect(bench.broker.acknowledged == ["o"])
        #expect(bench.broker.faults == [])
        #expect(Set(bench.replies.map(\.id)) == ["o"])
        #expect(bench.worker.jobs.isEmpty)
    }

    @Test("A delivery of a closed channel that was not decided yet is not decided")
    func undecidedIsDropped() throws {
        let bench = try Bench.serving()
        bench.command("o", "open", replies: false)
        bench.closeConsumer(ConsumerChannel.commands, Bench.noExchange)
        bench.settle()
        #expect(try bench.room("r")?.definition == nil)
        #expect(bench.worker.intake.isEmpty)
        bench.tick("t", ["r"])
        bench.closeConsumer(ConsumerChannel.ticks, Bench.noExchange)
        bench.settle()
        #expect(bench.worker.jobs.isEmpty)
    }

    @Test("A batch ends with so many bytes of bodies, and the rest follows")
    func batchBytes() throws {
        let bench = try Bench.serving { $0.batchBytes = 500 }
        let before = bench.store.commits.count
        bench.losePublisher()
        for number in 0..<10 {
            bench.command(
                "o\(number)", "open", "r\(number)",
                more: #","moderators":["\#(String(repeating: "m", count: 120))"]"#)
        }
        bench.settle()
        let rooms = bench.store.commits.dropFirst(before).map(\.rooms.count)
        #expect(rooms.reduce(0, +) == 10)
        #expect(rooms.count > 1)
    }

    @Test("While so many events are in hand that the bound is reached, no more is decided, and then it is")
    func eventBound() throws {
        let bench = try Bench.serving { $0.eventBound = 10 }
        bench.losePublisher()
        for number in 0..<600 { bench.command("o\(number)", "open", "r\(number)") }
        bench.settle()
        let held = bench.worker.outbox.held
        #expect(held >= 10 && held < 10 + 1_024)
        #expect(bench.broker.acknowledged.isEmpty)
        bench.connectPublisher()
        bench.pass(300)
        #expect(bench.broker.acknowledged.count == 600)
        #expect(Set(bench.events).count == 600)
    }
}
