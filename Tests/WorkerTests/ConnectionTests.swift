import AMQP
import Contract
import RoomCore
import Testing

@testable import Worker

@Suite("Connections that come and go")
struct ConnectionTests {
    @Test("A lost publisher: what had no confirm is sent again in order, then everything is acknowledged")
    func publisherLost() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.command("j", "join", user: "u")
        bench.settle()
        bench.losePublisher()
        bench.command("k", "join", user: "v")
        bench.pass(30_000, step: 1_000)
        #expect(bench.broker.acknowledged.isEmpty)
        bench.broker.verdict = { _, _ in .confirm }
        bench.connectPublisher()
        bench.settle()
        #expect(bench.events == ["r:1", "r:2", "r:3", "r:1", "r:2", "r:3", "r:4"])
        #expect(bench.replies.map(\.id) == ["o", "j", "o", "j", "k"])
        #expect(bench.broker.acknowledged == ["o", "j", "k"])
        let copies = Dictionary(grouping: bench.broker.published) { $0.publication.properties.messageID }
        for (id, all) in copies where id != nil {
            #expect(Set(all.map(\.publication.body)).count == 1)
            #expect(Set(all.map(\.publication.properties)).count == 1)
        }
    }

    @Test("Publications go to the channel's present life only")
    func generations() throws {
        let bench = try Bench.serving()
        bench.closePublisher(PublisherChannel.events)
        bench.command("o", "open")
        bench.settle()
        #expect(bench.events.isEmpty)
        bench.openPublisher(PublisherChannel.events)
        bench.settle()
        #expect(bench.events == ["r:1"])
    }

    @Test("A reply that closes its channel does not hold up the events, and is dropped")
    func poisonReply() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { channel, publication in
            channel == PublisherChannel.replies && publication.routingKey == "poison" ? .silence : .confirm
        }
        bench.put(
            "p", #"{"command":"open","room":"r","id":"p"}"#, properties: Properties(replyTo: "poison"))
        bench.command("q", "open", "s")
        for _ in 0..<3 {
            bench.settle()
            if bench.broker.outstanding.contains(where: { $0.publication.routingKey == "poison" }) {
                bench.closePublisher(PublisherChannel.replies, Bench.badMessage)
                bench.openPublisher(PublisherChannel.replies)
            }
        }
        bench.pass(200)
        #expect(Set(bench.events) == ["r:1", "s:1"])
        #expect(Set(bench.broker.acknowledged) == ["p", "q"])
        #expect(bench.worker.counters.droppedReplies == 1)
    }

    @Test("Where the replies' channel will not open at all, commands are still acknowledged after a minute")
    func repliesChannelDown() throws {
        let bench = try Bench.serving()
        bench.closePublisher(PublisherChannel.replies)
        bench.command("o", "open")
        for _ in 0..<65 {
            bench.pass(1_000)
            bench.closePublisher(PublisherChannel.replies)
        }
        #expect(bench.events == ["r:1"])
        #expect(bench.broker.acknowledged == ["o"])
    }

    @Test("While blocked nothing counts as overdue, and the broker has its ten seconds again afterwards")
    func blocked() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { _, _ in .silence }
        bench.handle(.publisher(.blocked(reason: "memory")))
        bench.command("o", "open")
        bench.pass(120_000, step: 1_000)
        bench.handle(.publisher(.unblocked))
        bench.pass(5_000)
        #expect(bench.events == ["r:1"], "no copy")
        #expect(bench.replies.count == 1)
        bench.pass(6_000)
        #expect(bench.events == ["r:1", "r:1"])
        #expect(bench.logFile.lines(containing: "blocked by the broker").count == 1)
    }

    @Test("A block ends with its connection")
    func blockedAndLost() throws {
        let bench = try Bench.serving()
        bench.handle(.publisher(.blocked(reason: "memory")))
        bench.losePublisher()
        bench.connectPublisher()
        bench.broker.verdict = { _, _ in .silence }
        bench.command("o", "open")
        bench.pass(11_000)
        #expect(bench.events == ["r:1", "r:1"], "missing confirms are noticed")
        bench.query(#"{"query":"state"}"#)
        bench.broker.verdict = { _, _ in .confirm }
        bench.settle()
        let state = bench.broker.published.compactMap { WorkerState.decode($0.publication.body) }.last
        #expect(state?["blocked"] == "no")
    }

    @Test("An event that is refused is not passed over while nothing can be published")
    func refusedThenOffline() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { channel, _ in channel == PublisherChannel.events ? .refuse : .confirm }
        bench.command("o", "open")
        bench.settle()
        bench.losePublisher()
        bench.pass(300_000, step: 1_000)
        #expect(bench.worker.counters.passedOver == 0)
        bench.broker.verdict = { _, _ in .confirm }
        bench.connectPublisher()
        bench.pass(2_000)
        #expect(bench.worker.counters.passedOver == 0)
        #expect(try bench.outbox().isEmpty)
    }

    @Test(
        "An event that closes the channel is found, said once, held back and passed over; other rooms go on")
    func eventThatClosesTheChannel() throws {
        let bench = try Bench.serving()
        bench.broker.verdict = { channel, one in
            let isLarge = one.properties.messageID == "large:1"
            return channel == PublisherChannel.events && isLarge ? .silence : .confirm
        }
        var closes = 0
        func settle() {
            bench.settle()
            while bench.broker.outstanding.contains(where: { $0.channel == PublisherChannel.events }) {
                closes += 1
                bench.closePublisher(PublisherChannel.events, Bench.badMessage)
                bench.openPublisher(PublisherChannel.events)
                bench.settle()
            }
        }
        bench.command("1", "open", "large")
        bench.command("2", "open", "other")
        settle()
        bench.command("3", "open", "large", more: #","duration":20"#)
        #expect(closes == 2)
        #expect(bench.logFile.lines(containing: "closes the channel over an event").count == 1)
        #expect(Set(bench.events) == ["large:1", "other:1"])
        bench.pass(61_000, step: 1_000)
        settle()
        bench.pass(1_000)
        #expect(closes == 3)
        #expect(bench.logFile.lines(containing: "event passed over: the broker closes").count == 1)
        #expect(bench.worker.counters.passedOver == 1)
        #expect(bench.events.last == "large:2")
        #expect(try bench.outbox().isEmpty)
    }

    @Test("A channel or connection that stays down is said once, not at each try")
    func saidOnce() throws {
        let bench = try Bench.serving()
        for _ in 0..<5 {
            bench.closePublisher(PublisherChannel.replies)
            bench.handle(
                .consumer(
                    .channelClosed(ConsumerChannel.ticks, generation: 99, Bench.noExchange, unknown: [])))
        }
        #expect(bench.logFile.lines(containing: "publishing channel closed").count == 1)
        #expect(bench.logFile.lines(containing: "consumer closed").count == 1)
        bench.openPublisher(PublisherChannel.replies)
        bench.closePublisher(PublisherChannel.replies)
        #expect(bench.logFile.lines(containing: "publishing channel closed").count == 2)
        for _ in 0..<5 { bench.handle(.publisher(.disconnected(Bench.lost, retryInMilliseconds: 1))) }
        #expect(bench.logFile.lines(containing: "disconnected").count == 1)
    }

    @Test("A queue that refuses everything is one matter, not one a room")
    func refusedRooms() throws {
        let bench = try Bench.serving()
        for number in 0..<200 { bench.command("o\(number)", "open", "r\(number)") }
        bench.broker.verdict = { _, _ in .silence }
        bench.settle()
        let events = bench.broker.outstanding.filter { $0.channel == PublisherChannel.events }
        bench.handle(.publisher(.refused(PublisherChannel.events, events.map(\.publication.id))))
        bench.settle()
        #expect(bench.logFile.lines(containing: "refuses events").count == 1)
        #expect(bench.logFile.lines(containing: "rooms=200 first=r0").count == 1)
    }

    @Test("Ordinary work writes no line at info or above")
    func quiet() throws {
        let bench = try Bench.serving()
        let before = bench.logFile.lines().filter { !$0.contains(" debug ") }.count
        for number in 0..<50 { bench.command("o\(number)", "open", "r\(number)") }
        bench.tick("t", ["r1"])
        bench.query(#"{"query":"rooms","after":null,"limit":5}"#)
        bench.pass(40_000, step: 1_000)
        #expect(bench.logFile.lines().filter { !$0.contains(" debug ") }.count == before)
    }

    @Test("Everything but the log is declared again, with bindings that nobody would miss")
    func topology() throws {
        let bench = try Bench.serving()
        let plans = WorkerPlans(settings: bench.settings, mode: .active)
        let all = bench.settings.topology.declarations(.active)
        #expect(plans.publisher[PublisherChannel.topology].declare == all)
    }
}
