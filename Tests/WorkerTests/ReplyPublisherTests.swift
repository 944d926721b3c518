import AMQP
import Testing

@testable import Worker

@Suite("Replies and dead letters")
struct ReplyPublisherTests {
    /// A publisher whose messages are called by their job.
    final class Rig {
        var publisher: ReplyPublisher
        var now: Int64 = 50_000

        init(_ persistence: ReplyPublisher.Persistence = .droppedWhenRefused) {
            publisher = ReplyPublisher(persistence)
        }

        func add(_ jobs: UInt64..., bytes: Int = 1, to queue: ShortString = "me") {
            for job in jobs {
                publisher.enqueue(
                    ReplyPublisher.Message(
                        exchange: "", routingKey: queue,
                        properties: Properties(messageID: ShortString("\(job)")),
                        body: Array(repeating: 7, count: bytes), mandatory: false, job: job), at: now)
            }
        }

        /// Numbers by job of what goes out now, in order.
        func send() -> [(job: String, id: UInt64)] {
            publisher.next(at: now).map { ($0.properties.messageID?.description ?? "", $0.id) }
        }

        func jobs() -> [String] { send().map(\.job) }
    }

    @Test("Are sent once, in order, and settle their job when confirmed")
    func plain() {
        let rig = Rig()
        rig.add(1, 2, 3)
        let sent = rig.send()
        #expect(sent.map(\.job) == ["1", "2", "3"])
        #expect(rig.jobs() == [])
        #expect(rig.publisher.confirmed([sent[0].id, sent[0].id]) == [1])
        #expect(rig.publisher.confirmed([sent[1].id, sent[2].id]) == [2, 3])
        #expect(rig.publisher.isEmpty)
    }

    @Test("What was on its way is sent again after a lost connection, before what came meanwhile")
    func resentAfterLoss() {
        let rig = Rig()
        rig.add(1, 2, 3)
        let sent = rig.send()
        _ = rig.publisher.confirmed([sent[1].id])
        rig.add(4)
        #expect(rig.publisher.channelLost(.withConnection, at: rig.now) == [])
        #expect(rig.jobs() == ["1", "3", "4"])
    }

    @Test("A reply that closes its channel is found and dropped; its neighbours get through")
    func poison() {
        let rig = Rig()
        rig.add(1, 2, 3, 4)
        var delivered: Set<String> = []
        var dropped: [UInt64] = []
        for _ in 0..<20 where !rig.publisher.isEmpty {
            let sent = rig.send()
            if sent.contains(where: { $0.job == "3" }) {
                // Those before it are confirmed or not: the broker answers the close first.
                dropped += rig.publisher.channelLost(.message, at: rig.now)
            } else {
                for one in sent where delivered.insert(one.job).inserted {
                    #expect(rig.publisher.confirmed([one.id]).count == 1)
                }
            }
        }
        #expect(delivered == ["1", "2", "4"])
        #expect(dropped == [3])
        #expect(rig.publisher.isEmpty)
    }

    @Test(
        "A lost connection makes nobody a suspect, nor does an exchange that is closed to all",
        arguments: [ReplyPublisher.Loss.withConnection, .exchange])
    func noSuspects(loss: ReplyPublisher.Loss) {
        let rig = Rig()
        rig.add(1, 2)
        _ = rig.send()
        for _ in 0..<5 {
            #expect(rig.publisher.channelLost(loss, at: rig.now) == [])
            #expect(rig.jobs() == ["1", "2"])
        }
        let alone = Rig()
        alone.add(1)
        for _ in 0..<5 {
            #expect(alone.jobs() == ["1"])
            #expect(alone.publisher.channelLost(loss, at: alone.now) == [])
        }
    }

    @Test("What the broker said of the channel tells whether a message may have closed it")
    func losses() {
        func loss(_ kind: AMQPError.Kind, _ scope: AMQPError.Scope) -> ReplyPublisher.Loss {
            ReplyPublisher.Loss(AMQPError(scope: scope, kind: kind, text: ""))
        }
        #expect(loss(.preconditionFailed, .channel) == .message)
        #expect(loss(.otherClose(311), .channel) == .message)
        #expect(loss(.accessRefused, .channel) == .exchange)
        #expect(loss(.notFound, .channel) == .exchange)
        #expect(loss(.accessRefused, .connection) == .withConnection)
        #expect(ReplyPublisher.Loss(nil) == .withConnection)
    }

    @Test("A dead letter is never dropped, and one that closes the channel does not hold up the others")
    func lettersNeverDropped() {
        let rig = Rig(.untilTaken)
        rig.add(1, 2, 3)
        var delivered: Set<String> = []
        for _ in 0..<20 {
            let sent = rig.send()
            if sent.contains(where: { $0.job == "1" }) {
                #expect(rig.publisher.channelLost(.message, at: rig.now) == [])
            } else {
                for one in sent {
                    delivered.insert(one.job)
                    _ = rig.publisher.confirmed([one.id])
                }
            }
        }
        #expect(delivered == ["2", "3"])
        #expect(!rig.publisher.isEmpty)
        let last = rig.send()
        #expect(last.map(\.job) == ["1"])
        #expect(rig.publisher.confirmed([last[0].id]) == [1])
    }

    @Test("A refused reply is tried again each second, since its queue may be without a leader for a while")
    func refusedReply() {
        let rig = Rig()
        rig.add(1)
        for _ in 0..<19 {
            let sent = rig.send()
            #expect(sent.map(\.job) == ["1"])
            #expect(rig.publisher.refused(sent.map(\.id), at: rig.now) == [])
            #expect(rig.jobs() == [])
            rig.now += 1_000
        }
        #expect(rig.publisher.confirmed(rig.send().map(\.id)) == [1])
        #expect(rig.publisher.isEmpty)
    }

    @Test(
        "A queue that goes on refusing is waited for once; other queues are not concerned, and it is forgotten"
    )
    func refusingQueue() {
        let rig = Rig()
        func refuse(_ job: UInt64, by queue: ShortString = "me") -> [UInt64] {
            rig.add(job, to: queue)
            return rig.publisher.refused(rig.send().filter { $0.job == "\(job)" }.map(\.id), at: rig.now)
        }
        #expect(refuse(1) == [])
        rig.now += 20_000
        let again = rig.send()
        #expect(again.map(\.job) == ["1"])
        #expect(rig.publisher.refused(again.map(\.id), at: rig.now) == [1])
        #expect(refuse(2) == [2] && refuse(3) == [3])
        #expect(refuse(4, by: "another") == [])
        // It takes one now and then, and is full all the same.
        rig.add(5)
        #expect(rig.publisher.confirmed(rig.send().filter { $0.job == "5" }.map(\.id)) == [5])
        rig.now += 30_000
        _ = rig.publisher.tick(at: rig.now)
        #expect(refuse(6) == [6])
        rig.now += 60_000
        _ = rig.publisher.tick(at: rig.now)
        #expect(refuse(7) == [])
    }

    @Test("A refused letter is tried again after a second, for as long as it takes")
    func refusedLetter() {
        let rig = Rig(.untilTaken)
        rig.add(1)
        for _ in 0..<200 {
            let sent = rig.send()
            #expect(sent.map(\.job) == ["1"])
            #expect(rig.publisher.refused(sent.map(\.id), at: rig.now) == [])
            #expect(rig.jobs() == [])
            rig.now += 1_000
        }
    }

    @Test("Without a confirm a reply is sent again each ten seconds and let go after sixty; a letter is not")
    func noConfirm() {
        for (persistence, ends) in [
            (ReplyPublisher.Persistence.droppedWhenRefused, true), (.untilTaken, false),
        ] {
            let rig = Rig(persistence)
            rig.add(1, 2)
            var dropped: [UInt64] = []
            var sent = 0
            for _ in 0..<9 {
                let jobs = rig.jobs()
                #expect(jobs == ["1", "2"] || !dropped.isEmpty, "in order")
                sent += jobs.count
                rig.now += 10_000
                dropped += rig.publisher.tick(at: rig.now)
            }
            #expect(dropped.sorted() == (ends ? [1, 2] : []))
            #expect(sent == (ends ? 12 : 18))
        }
    }

    @Test("A thousand suspects cost one look each, not a million")
    func manySuspects() {
        // One at a time past all that wait is quadratic, 16 times the cost for four times as many; looking for what is
        // on its way at each of these looks would be cubic, 64 times.
        let ratio = Growth.ratio(small: 250, large: 1_000) { count in
            let rig = Rig()
            for job in 1...count { rig.add(UInt64(job)) }
            _ = rig.send()
            _ = rig.publisher.channelLost(.message, at: rig.now)
            for _ in 0..<count { _ = rig.publisher.confirmed(rig.send().map(\.id)) }
            #expect(rig.publisher.isEmpty)
        }
        #expect(ratio < 32)
    }

    @Test("Replies are let go after a minute where their channel will not open, and no delivery waits longer")
    func channelThatDoesNotOpen() {
        let rig = Rig()
        rig.add(1)
        #expect(rig.publisher.channelLost(.message, at: rig.now) == [])
        rig.now += 59_000
        #expect(rig.publisher.tick(at: rig.now) == [])
        rig.now += 1_000
        #expect(rig.publisher.tick(at: rig.now) == [1])

        let offline = Rig()
        offline.add(1)
        _ = offline.publisher.channelLost(.withConnection, at: offline.now)
        offline.now += 600_000
        #expect(offline.publisher.tick(at: offline.now) == [], "a broker that is away is waited for")
    }

    @Test("Answers that no delivery waits for are bounded while the broker is away")
    func unowedAnswers() {
        let rig = Rig()
        for _ in 0..<1_000 { rig.add(0, bytes: 100_000) }
        rig.add(9)
        let sent = rig.send()
        #expect(sent.count <= 200)
        #expect(sent.last?.job == "9")

        let old = Rig()
        old.add(0)
        old.now += 30_000
        _ = old.publisher.tick(at: old.now)
        #expect(old.publisher.isEmpty, "nobody waits for it any more")
    }

    @Test("A blocked broker is given its time again when it is not blocked any more")
    func afterABlock() {
        let rig = Rig()
        rig.add(1)
        _ = rig.send()
        rig.now += 120_000
        rig.publisher.restartClocks(at: rig.now)
        #expect(rig.publisher.tick(at: rig.now) == [])
        #expect(rig.jobs() == [])
    }
}
