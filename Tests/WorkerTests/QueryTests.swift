import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("Queries")
struct QueryTests {
    private func bodies(_ bench: Bench) -> [[UInt8]] {
        bench.broker.published.filter { $0.channel == PublisherChannel.replies }.map(\.publication.body)
    }

    private func open(_ bench: Bench, _ rooms: Int) {
        for number in 0..<rooms {
            bench.command("o\(number)", "open", "r\(number)", replies: false)
            bench.command("j\(number)", "join", "r\(number)", user: "u", replies: false)
        }
        bench.settle()
    }

    @Test("One that was too large to be held is answered all the same")
    func tooLarge() throws {
        let bench = try Bench.serving()
        bench.put(
            FakeBroker.Message(
                name: "q", properties: Properties(replyTo: "me"), body: .discarded(size: 70_000)),
            on: ConsumerChannel.queries)
        bench.settle()
        guard case .failure(.refused(let failure)) = QueryReplyDecoder.rooms(try #require(bodies(bench).last))
        else { return #expect(Bool(false)) }
        #expect(failure.code == 6008)
        #expect(bench.broker.acknowledged == ["q"])
    }

    @Test("Rooms come in pages, in byte order, with the sequence and the next due instant")
    func pages() throws {
        let bench = try Bench.serving()
        open(bench, 5)
        var seen: [RoomID] = []
        var after = "null"
        for _ in 0..<4 {
            bench.query(#"{"query":"rooms","after":\#(after),"limit":2}"#)
            bench.settle()
            let page = try QueryReplyDecoder.rooms(try #require(bodies(bench).last)).get()
            seen += page.rows.map(\.room)
            for row in page.rows {
                #expect(row.sequence == 3)
                #expect(row.nextDueAt == Instant(milliseconds: Bench.noon) + .minutes(50))
            }
            guard let next = page.next else { break }
            after = "\"\(next.text)\""
        }
        #expect(seen == ["r0", "r1", "r2", "r3", "r4"])
    }

    @Test("Participants, an unknown room, nonsense and the state are answered")
    func others() throws {
        let bench = try Bench.serving()
        open(bench, 1)
        for query in [
            #"{"query":"participants","room":"r0"}"#, #"{"query":"participants","room":"no"}"#, "{",
        ] {
            bench.query(query)
        }
        bench.query(#"{"query":"state"}"#)
        bench.settle()
        let all = bodies(bench)
        #expect(try QueryReplyDecoder.participants(all[0]).get().rows.map(\.user) == ["u"])
        #expect(bench.replies.map { $0.error?.code } == [nil, 6002, 6008, nil])
        #expect(WorkerState.decode(all[3])?["phase"] == "serving")
        #expect(bench.broker.isDone(ConsumerChannel.queries))
    }

    @Test("One unreadable room is no failure of the store")
    func corruptRoom() throws {
        let bench = try Bench.serving()
        bench.store.loadFailure = {
            $0.rooms == ["bad"] ? .corruptRoom("bad", "its rows make no sense") : nil
        }
        bench.query(#"{"query":"participants","room":"bad"}"#)
        bench.settle()
        #expect(bench.worker.counters.storeFailures == 0)
        #expect(bench.logFile.lines(containing: "bad").count == 1)
        #expect(bench.broker.consuming[ConsumerChannel.commands] != nil)
        #expect(bench.broker.isDone(ConsumerChannel.queries))
    }

    @Test("Queries while the store fails do not put off its next try")
    func whileTheStoreFails() throws {
        let bench = try Bench.serving()
        bench.store.failure = { _ in .io(code: 10, "disk") }
        bench.command("o", "open")
        bench.settle()
        for _ in 0..<60 {
            bench.query(#"{"query":"rooms","after":null,"limit":500}"#)
            bench.pass(1_000)
        }
        let tries = bench.store.calls[.check] ?? 0
        #expect(tries >= 7, "1, 2, 4, 8 and 10 seconds apart, not \(tries) in a minute")
        #expect(bench.logFile.lines(containing: "the store fails").count == 1)
    }

    @Test("Answers do not pile up while nothing can be published")
    func boundedAnswers() throws {
        let bench = try Bench.serving()
        open(bench, 200)
        bench.losePublisher()
        for _ in 0..<500 {
            bench.query(#"{"query":"rooms","after":null,"limit":1000}"#)
            bench.tick("t", (0..<200).map { RoomID("r\($0)") })
            bench.settle()
        }
        bench.broker.published = []
        bench.connectPublisher()
        bench.settle()
        let bytes = bodies(bench).reduce(0) { $0 + $1.count }
        #expect(bytes < 20_000_000)
        bench.query(#"{"query":"state"}"#)
        bench.settle()
        #expect(WorkerState.decode(try #require(bodies(bench).last)) != nil)
    }
}
