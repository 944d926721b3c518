import AMQP
import Contract
import RoomCore
import Testing

@testable import Worker

@Suite("Repeated commands")
struct RepeatTests {
    private func replyBodies(_ bench: Bench) -> [[UInt8]] {
        bench.broker.published.filter { $0.channel == PublisherChannel.replies }.map(\.publication.body)
    }

    @Test("Get the stored bytes, at their own reply_to with their own correlation, and change nothing")
    func storedBytes() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.pass(60_000)
        bench.put(
            "again", #"{"command":"join","room":"r","id":"j","user":"u"}"#,
            properties: Properties(correlationID: "other", replyTo: "elsewhere"))
        bench.settle()
        let replies = bench.broker.published.filter { $0.channel == PublisherChannel.replies }.map(
            \.publication)
        #expect(replies.last?.body == replies[1].body)
        #expect(replies.last?.routingKey == "elsewhere")
        #expect(replies.last?.properties.correlationID == "other")
        #expect(Set(bench.events) == ["r:1", "r:2", "r:3"])
        #expect(bench.worker.counters.repeated == 1)
    }

    @Test("Refusals are repeated too; a new attempt needs a new id")
    func refusals() throws {
        let bench = try Bench.serving()
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        #expect(replyBodies(bench)[0] == replyBodies(bench)[2])
        #expect(bench.replies.map(\.ok) == [false, true, false])
    }

    @Test("The same key with another command is id_reused, is not stored and changes nothing")
    func idReused() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.command("j", "join", user: "v")
        bench.command("j", "leave", user: "u")
        bench.command("j", "join", user: "u")
        bench.settle()
        #expect(bench.replies.map { $0.error?.reason } == [nil, nil, "id_reused", "id_reused", nil])
        #expect(try bench.room("r")?.session?.connected == 1)
    }

    @Test("Within one batch the second gets the first one's answer", arguments: [2, 100])
    func inOneBatch(copies: Int) throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.settle()
        let bodies = (0..<copies).map { _ in
            Worker.Input.consumer(
                .delivery(
                    ConsumerChannel.commands,
                    Delivery(
                        consumerTag: "c", tag: DeliveryTag(generation: 0, number: 1), redelivered: false,
                        exchange: "", routingKey: "r", properties: Properties(replyTo: "me"),
                        body: .bytes(Array(#"{"command":"join","room":"r","user":"u","id":"j"}"#.utf8)))))
        }
        bench.worker.handle(bodies, at: bench.uptime)
        bench.settle()
        let replies = replyBodies(bench).dropFirst()
        #expect(replies.count == copies)
        #expect(Set(replies).count == 1)
        #expect(Set(bench.events) == ["r:1", "r:2", "r:3"])
    }

    @Test("A repeat brings its room up to date: what came due is announced")
    func bringsUpToDate() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.clock.advance(51 * 60_000)
        bench.command("j", "join", user: "u")
        bench.settle()
        #expect(bench.eventTypes.last == "session.window.opened")
        bench.clock.advance(10 * 60_000)
        bench.command("j", "join", user: "v")
        bench.settle()
        #expect(bench.eventTypes.last == "session.ended")
    }

    @Test("status is answered each time anew and never stored")
    func status() throws {
        let bench = try Bench.serving()
        bench.command("o", "open")
        bench.command("s", "status")
        bench.pass(1_000)
        bench.command("s", "status")
        bench.settle()
        #expect(Set(replyBodies(bench)).count == 3)
        #expect(try bench.answer("r", "s") == nil)
    }
}
