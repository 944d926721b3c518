import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

/// Everything that can befall a worker, in any order: crashes, a failing store, lost connections and channels, refusals,
/// silence, blocks, stops. Then calm, and the books must balance.
@Suite("A worker in a storm")
struct StormTests {
    private static let rooms = ["a", "b", "c"]
    private static let users = ["u", "v", "w"]

    /// What has been sent, and the weather.
    private final class Storm {
        let bench: Bench
        var dice: OutboxRandomTests.Dice
        var sent: [(name: String, room: String)] = []
        var bad: Set<String> = []

        init(seed: Int) throws {
            bench = try Bench.serving { $0.batchSize = 8 }
            dice = OutboxRandomTests.Dice(state: UInt64(seed) &* 104_729 &+ 17)
        }

        func one<Element>(_ choices: [Element]) -> Element { choices[dice.roll(choices.count)] }

        func command() {
            let name = "c\(sent.count)"
            let room = one(StormTests.rooms)
            switch dice.roll(10) {
            case 0, 1: bench.command(name, "open", room)
            case 2, 3, 4:
                bench.command(name, "join", room, user: one(StormTests.users), more: #","role":"moderator""#)
            case 5: bench.command(name, "leave", room, user: one(StormTests.users))
            case 6: bench.command(name, "extend", room, user: one(StormTests.users))
            case 7: bench.command(name, "destroy", room, user: one(StormTests.users))
            case 8 where !sent.isEmpty:
                // A repeat of some earlier one, as a publisher sends that heard nothing.
                let earlier = sent[dice.roll(sent.count)]
                bench.command(earlier.name, "status", earlier.room)
                return
            default:
                bad.insert(name)
                bench.put(name, "nonsense \(name)")
                return
            }
            sent.append((name, room))
        }

        func weather() throws {
            switch dice.roll(16) {
            case 0: bench.fuse.blowsAt = bench.fuse.count + 1 + dice.roll(12)
            case 1: try bench.replaceWorker()
            case 2:
                let error = one([StoreError.io(code: 10, "disk"), .full(path: "x"), .busy(path: "x")])
                let call = one([FlakyStore.Call.commit, .load, .markPublished, .unpublished])
                bench.store.failure = { $0 == call ? error : nil }
            case 3: bench.store.doubt = { $0 == .commit ? .io(code: 10, "disk") : nil }
            case 4, 5, 6: calmStore()
            case 7:
                if bench.broker.publishing.isEmpty { bench.connectPublisher() } else { bench.losePublisher() }
            case 8:
                if bench.broker.isConsumerConnected { bench.loseConsumer() } else { bench.connectConsumer() }
            case 9: bench.bounceConsumer()
            case 10:
                guard bench.broker.publishing[PublisherChannel.events] != nil else { break }
                bench.closePublisher(PublisherChannel.events)
                bench.openPublisher(PublisherChannel.events)
            case 11: bench.broker.verdict = { _, _ in .silence }
            case 12:
                bench.broker.verdict = { channel, _ in channel == PublisherChannel.events ? .refuse : .confirm
                }
            case 13:
                bench.handle(.stop)
                bench.pass(5_200)
                try bench.replaceWorker()
            default: bench.broker.verdict = { _, _ in .confirm }
            }
        }

        func calmStore() {
            bench.store.failure = { _ in nil }
            bench.store.doubt = { _ in nil }
        }

        func revive() throws { if bench.fuse.isBlown { try bench.replaceWorker() } }

        func calm() throws {
            calmStore()
            bench.fuse.blowsAt = nil
            try revive()
            bench.broker.verdict = { _, _ in .confirm }
            if !bench.broker.isConsumerConnected { bench.connectConsumer() }
            if bench.broker.publishing.isEmpty { bench.connectPublisher() }
            bench.pass(30_000, step: 500)
        }
    }

    @Test("Nothing is lost, doubled, out of order or forgotten", arguments: 0..<40)
    func books(seed: Int) throws {
        let storm = try Storm(seed: seed)
        let bench = storm.bench
        for _ in 0..<120 {
            for _ in 0..<storm.dice.roll(4) { storm.command() }
            if storm.dice.roll(8) == 0 { bench.tick("tick", Self.rooms.map { RoomID($0) }) }
            if storm.dice.roll(3) == 0 { try storm.weather() }
            if storm.dice.roll(20) == 0 { bench.clock.advance(Int64(storm.dice.roll(30 * 60_000))) }
            bench.pass(Int64(1 + storm.dice.roll(1_500)), step: 250)
            try storm.revive()
        }
        try storm.calm()
        try check(storm, "seed \(seed)")
    }

    private func check(_ storm: Storm, _ what: Comment) throws {
        let bench = storm.bench
        #expect(bench.broker.isDone(ConsumerChannel.commands), what)
        #expect(bench.broker.faults == [], what)
        #expect(bench.worker.jobs.isEmpty, what)
        #expect(try bench.outbox().isEmpty, what)
        #expect(bench.worker.outbox.held == 0, what)
        #expect(Set(bench.letters.map(\.body)) == Set(storm.bad.map { Array("nonsense \($0)".utf8) }), what)

        let replies = Dictionary(
            grouping: bench.broker.published.filter { $0.channel == PublisherChannel.replies }
                .map(\.publication), by: { $0.properties.correlationID?.string ?? "" })
        for (name, room) in storm.sent {
            let stored = try #require(try bench.answer(RoomID(room), CommandID(name)), what)
            let own = (replies[name] ?? []).filter {
                ReplyDecoder.decode($0.body)?.error?.reason != "id_reused"
            }
            #expect(!own.isEmpty, what)
            #expect(own.allSatisfy { $0.body == stored.reply }, what)
        }

        let events = bench.broker.published.filter { $0.channel == PublisherChannel.events }.map(
            \.publication)
        for name in Self.rooms {
            var first: [String] = []
            for event in events {
                let id = event.properties.messageID?.description ?? ""
                if id.hasPrefix("\(name):"), !first.contains(id) { first.append(id) }
            }
            let last = try bench.room(RoomID(name))?.sequence ?? 0
            #expect(first == (0..<last).map { "\(name):\($0 + 1)" }, what)
        }
        for (_, copies) in Dictionary(grouping: events, by: { $0.properties.messageID }) {
            #expect(Set(copies.map(\.body)).count == 1, what)
            #expect(Set(copies.map(\.properties)).count == 1, what)
        }
    }
}
