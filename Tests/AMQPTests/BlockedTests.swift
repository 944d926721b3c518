import Testing

@testable import AMQP

/// A broker that is short of memory: it says so once, and reads no more.
@Suite(.timeLimit(.minutes(1)))
struct BlockedTests {
    /// The broker made up here sends no heartbeats, and between two steps of a test others may have the processors for long.
    private static let heartbeat: UInt16 = 300

    @Test("while the broker blocks, publications wait and acknowledgements go on")
    func blocked() async throws {
        let fakeLog = EventLog()
        let fake = try FakeBroker { peer in
            try peer.welcome()
            try peer.await(20, 10)
            try peer.method(20, 11, channel: 1, RawPeer.long([]))
            try peer.await(60, 20)
            try peer.method(60, 21, channel: 1, RawPeer.short("c"))
            try peer.method(10, 60, RawPeer.short("low on memory"))
            let deliver =
                RawPeer.short("c") + RawPeer.big(UInt64(1)) + [0] + RawPeer.short("x") + RawPeer.short("k")
            try peer.method(60, 60, channel: 1, deliver)
            try peer.write(type: 2, channel: 1, [0, 60, 0, 0] + RawPeer.big(UInt64(0)) + [0, 0])
            // The publication was asked for first, yet the acknowledgement comes first.
            let first = try peer.frame()
            fakeLog.observer([.connecting(attempt: Int(first.method ?? 0))])
            try peer.method(10, 61)
            let second = try peer.frame()
            fakeLog.observer([.connecting(attempt: Int(second.method ?? 0))])
        }
        let plan = ChannelPlan(consumers: [ConsumerPlan(queue: "q", tag: "c")])
        try await TestBroker.withLink(fake.configuration(heartbeatSeconds: Self.heartbeat), { [plan] }) {
            link, log in
            let generation = try await log.opened(0)
            let reason = try await log.next("a blocked connection") { event in
                if case .blocked(let reason) = event { return reason }
                return nil
            }
            #expect(reason == "low on memory")
            let delivery = try await log.delivery(0)
            link.publish([publication(1)], on: 0, generation: generation)
            link.acknowledge([delivery.tag], on: 0)
            _ = try await log.next("the end of it") { $0 == .unblocked ? true : nil }
            let order: [Int] = [
                try await fakeLog.next("the first method") {
                    if case .connecting(let method) = $0 { method } else { nil }
                },
                try await fakeLog.next("the second") {
                    if case .connecting(let method) = $0 { method } else { nil }
                },
            ]
            #expect(order == [60 << 16 | 80, 60 << 16 | 40])
        }
    }

    @Test("a flood towards a broker that reads no more leaves the link able to hear why")
    func flood() async throws {
        let fake = try FakeBroker { peer in
            try peer.welcome()
            try peer.await(20, 10)
            try peer.method(20, 11, channel: 1, RawPeer.long([]))
            try peer.await(85, 10)
            try peer.method(85, 11, channel: 1)
            try peer.await(60, 40)
            try peer.method(10, 60, RawPeer.short("low on memory"))
        }
        let plan = ChannelPlan(confirms: true)
        try await TestBroker.withLink(fake.configuration(heartbeatSeconds: Self.heartbeat), { [plan] }) {
            link, log in
            let generation = try await log.opened(0)
            let body = [UInt8](repeating: 0, count: 10_000)
            link.publish((1...3000).map { publication($0, body: body) }, on: 0, generation: generation)
            _ = try await log.next("a blocked connection") { event in
                if case .blocked = event { return true }
                return nil
            }
            let took = try await link.stopAside()
            #expect(took < .seconds(2.2))
            let (_, unknown) = try await log.closed(0)
            #expect(unknown.count == 3000)
        }
    }
}
