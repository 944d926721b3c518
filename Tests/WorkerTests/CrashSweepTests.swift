import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

/// The sweep of a kill at each step: commands are sent, the worker dies at its n-th effect (before or after a write, at
/// each thing that it sends), another one takes its place, and in the end nothing may be lost, doubled or out of order.
@Suite("A worker killed at any step")
struct CrashSweepTests {
    private static let rooms = ["a", "b", "c"]

    /// One by one where `isSlow`, so that many batches are under way, or all in one batch.
    private func sendAll(_ bench: Bench, isSlow: Bool) {
        func next() { if isSlow, !bench.fuse.isBlown { bench.turn() } }
        for room in Self.rooms {
            bench.command("open-\(room)", "open", room)
            bench.command(
                "join-\(room)", "join", room, user: "m", more: #","role":"moderator""#)
            next()
        }
        bench.put("bad", "nonsense")
        next()
        bench.command("extend-a", "extend", "a", user: "m")
        next()
        bench.command("destroy-b", "destroy", "b", user: "m")
        bench.command("leave-c", "leave", "c", user: "m")
        bench.command("refused", "extend", "nowhere", user: "m")
    }

    private static let names = [
        "open-a", "join-a", "open-b", "join-b", "open-c", "join-c", "bad", "extend-a", "destroy-b", "leave-c",
        "refused",
    ]

    @Test(
        "Once: every command has one end, its state changes once, its events go out in order and alike",
        arguments: [true, false])
    func once(isSlow: Bool) throws {
        var effects = 0
        for step in 1...200 {
            let bench = try Bench.serving()
            bench.fuse.blowsAt = bench.fuse.count + step
            sendAll(bench, isSlow: isSlow)
            bench.settle()
            bench.pass(500)
            let isDead = bench.fuse.isBlown
            if isDead { try bench.replaceWorker() }
            bench.fuse.reset()
            bench.pass(1_000)
            try check(bench, "killed at \(step)")
            effects = step
            if !isDead { break }
        }
        #expect(effects > (isSlow ? 20 : 7), "the sweep has steps")
        #expect(effects < 200, "the sweep comes to its end")
    }

    @Test("Again and again, at the n-th effect of each life", arguments: 1...12)
    func repeatedly(step: Int) throws {
        let bench = try Bench.serving()
        sendAll(bench, isSlow: false)
        for _ in 0..<6 {
            bench.fuse.blowsAt = bench.fuse.count + step
            bench.settle()
            bench.pass(300)
            guard bench.fuse.isBlown else { break }
            try bench.replaceWorker()
        }
        bench.fuse.reset()
        bench.pass(1_000)
        try check(bench, "killed at each \(step)")
    }

    private func check(_ bench: Bench, _ what: Comment) throws {
        // I1: one end each.
        #expect(bench.broker.isDone(ConsumerChannel.commands), what)
        #expect(bench.broker.acknowledged.sorted() == Self.names.sorted(), what)
        #expect(bench.broker.faults == [], what)
        #expect(Set(bench.letters.map(\.body)) == [Array("nonsense".utf8)], what)
        // I2: applied once.
        #expect(try bench.room("a")?.session?.connected == 1, what)
        #expect(try bench.room("a")?.sequence == 3, what)
        #expect(try bench.room("b")?.sequence == 5, what)
        #expect(try bench.room("c")?.sequence == 4, what)
        for name in Self.names where name != "bad" {
            let room = name == "refused" ? "nowhere" : String(name.suffix(1))
            let stored = try #require(try bench.answer(RoomID(room), CommandID(name)), what)
            let sent = bench.broker.published.filter {
                $0.channel == PublisherChannel.replies
                    && $0.publication.properties.correlationID?.string == name
            }
            #expect(!sent.isEmpty, what)
            #expect(sent.allSatisfy { $0.publication.body == stored.reply }, what)
        }
        // I3 and I4: every event, first copies in order, copies alike.
        let events = bench.broker.published.filter { $0.channel == PublisherChannel.events }.map(
            \.publication)
        for (room, last) in [("a", 3), ("b", 5), ("c", 4)] {
            var first: [String] = []
            for event in events {
                let id = event.properties.messageID?.description ?? ""
                guard id.hasPrefix("\(room):"), !first.contains(id) else { continue }
                first.append(id)
            }
            #expect(first == (1...last).map { "\(room):\($0)" }, what)
        }
        for (_, copies) in Dictionary(grouping: events, by: { $0.properties.messageID }) {
            #expect(Set(copies.map(\.body)).count == 1, what)
        }
        #expect(try bench.outbox().isEmpty, what)
    }
}
