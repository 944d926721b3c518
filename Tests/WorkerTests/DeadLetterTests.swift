import AMQP
import Contract
import RoomCore
import Testing

@testable import Worker

@Suite("Dead letters")
struct DeadLetterTests {
    @Test(
        "What is no valid command goes there, whole, and is answered where an answer is wanted",
        arguments: [
            ("not json", "not_json"), ("[1]", "not_an_object"), ("{}", "invalid_command"),
            (#"{"command":"open","room":"r","minuets":5}"#, "invalid_command"),
            (#"{"command":"join","room":"r"}"#, "invalid_command"),
            (String(repeating: " ", count: 70_000), "too_large"),
        ])
    func invalid(body: String, reason: String) throws {
        let bench = try Bench.serving()
        bench.put("bad", body, properties: Properties(correlationID: "c", replyTo: "me"))
        bench.settle()
        let letter = try #require(bench.letters.first)
        #expect(letter.exchange == "overtime.dead")
        #expect(letter.mandatory)
        #expect(letter.body == Array(body.utf8))
        #expect(letter.properties.headers?["x-overtime-reason"]?.text == reason)
        #expect(letter.properties.headers?["x-overtime-detail"]?.text?.isEmpty == false)
        #expect(bench.replies.map { $0.error?.reason } == ["invalid_command"])
        #expect(bench.broker.acknowledged == ["bad"])
    }

    @Test("Acknowledged only when the letter is confirmed, however long that takes")
    func confirmedFirst() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.letters ? .silence : .confirm }
        bench.put("bad", "{", properties: Properties(replyTo: "me"))
        bench.pass(5_000)
        #expect(bench.broker.acknowledged == [])
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.letters ? .refuse : .confirm }
        bench.pass(180_000, step: 1_000)
        #expect(bench.broker.acknowledged == [])
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.letters ? .returned : .confirm }
        bench.pass(30_000, step: 1_000)
        #expect(bench.broker.acknowledged == [])
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(2_000)
        #expect(bench.broker.acknowledged == ["bad"])
        #expect(bench.replies.count == 1)
    }

    @Test("A broker that takes no letters is reported once, not with every try")
    func saidOnce() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.letters ? .returned : .confirm }
        for number in 0..<5 { bench.put("bad\(number)", "{") }
        bench.pass(60_000, step: 1_000)
        #expect(bench.logFile.lines(containing: "no queue takes dead letters").count == 1)
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.letters ? .refuse : .confirm }
        bench.pass(60_000, step: 1_000)
        #expect(bench.logFile.lines(containing: "dead letter refused").count == 1)
        bench.broker.verdict = { _, _ in .confirm }
        bench.pass(2_000)
        #expect(bench.broker.acknowledged.count == 5)
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.letters ? .refuse : .confirm }
        bench.put("bad", "{")
        bench.pass(5_000)
        #expect(bench.logFile.lines(containing: "dead letter refused").count == 2)
    }

    @Test("A reply_to among Overtime's own queues makes a letter and no answer")
    func forbiddenReply() throws {
        let bench = try Bench.serving()
        bench.put(
            "loop", #"{"command":"open","room":"r"}"#, properties: Properties(replyTo: "overtime.commands"))
        bench.settle()
        #expect(bench.letters.count == 1)
        #expect(bench.replies.isEmpty)
        #expect(try bench.room("r")?.definition == nil)
        #expect(bench.broker.acknowledged == ["loop"])
    }

    @Test("A body too large to hold is moved by the broker itself, and answered")
    func oversized() throws {
        let bench = try Bench.serving()
        bench.put(
            FakeBroker.Message(
                name: "huge", properties: Properties(replyTo: "me"), body: .discarded(size: 99_000_000)))
        bench.settle()
        #expect(bench.broker.rejected == ["huge"])
        #expect(bench.letters.isEmpty)
        #expect(bench.replies.map { $0.error?.reason } == ["invalid_command"])
        #expect(bench.broker.acknowledged.isEmpty)
    }

    @Test("Bad commands among good ones disturb nobody")
    func neighbours() throws {
        let bench = try Bench.serving()
        for number in 0..<100 {
            bench.command("o\(number)", "open", "r\(number)")
            bench.put("bad\(number)", "nonsense \(number)")
        }
        bench.settle()
        #expect(bench.broker.acknowledged.count == 200)
        #expect(bench.letters.count == 100)
        #expect(bench.replies.filter(\.ok).count == 100)
    }
}
