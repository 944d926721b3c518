import Testing

@testable import AMQP

@Suite(.enabled(if: TestBroker.isThere, TestBroker.noBroker), .timeLimit(.minutes(1)))
struct DeepHeaderTests {
    @Test(
        "headers nested thousands deep crash nothing and are told as too deep",
        arguments: [65, 14_000, 20_000])
    func deep(depth: Int) async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue)],
                    consumers: [ConsumerPlan(queue: queue, tag: "c", noAck: true)])
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("deep"), plans) { _, log in
            _ = try await log.opened(0)
            let endpoint = try TestBroker.endpoint()
            let peer = try RawPeer.connect(port: endpoint.port)
            try peer.logIn(
                user: endpoint.user, password: endpoint.password.value, virtualHost: endpoint.virtualHost)
            try peer.method(
                60, 40, channel: 1, [0, 0] + RawPeer.short("") + RawPeer.short(queue.string ?? "") + [0])
            // Each level: an empty key, the letter F, and the size of what is inside.
            var table = RawPeer.big(UInt32((depth - 1) * 6))
            for level in (0..<depth - 1).reversed() {
                table += [0, UInt8(ascii: "F")] + RawPeer.big(UInt32(level * 6))
            }
            try peer.write(
                type: 2, channel: 1,
                [0, 60, 0, 0] + RawPeer.big(UInt64(0)) + RawPeer.big(UInt16(1 << 13)) + table)
            let delivery = try await log.delivery(0)
            #expect(delivery.properties.headersTooDeep)
            #expect(delivery.properties.headers == nil)
        }
    }
}
