import Testing

@testable import AMQP

@Suite(.enabled(if: TestBroker.isThere, TestBroker.noBroker), .timeLimit(.minutes(1)))
struct RoundTripTests {
    /// One channel that publishes with confirms and one that consumes a queue of its own.
    private func withQueue(
        maximumBodyBytes: Int = ChannelPlan.defaultMaximumBodyBytes, prefetch: UInt16 = 50,
        _ body: (Link, EventLog, ShortString, UInt64) async throws -> Void
    ) async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue)], prefetch: prefetch,
                    consumers: [ConsumerPlan(queue: queue, tag: "c")], maximumBodyBytes: maximumBodyBytes),
                ChannelPlan(confirms: true),
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("round-trip"), plans) { link, log in
            // The two open independently, in either order.
            var generations: [Int: UInt64] = [:]
            while generations.count < 2 {
                let (channel, generation) = try await log.next("both channels") { event in
                    if case .channelOpened(let channel, let generation) = event {
                        return (channel, generation)
                    }
                    return nil
                }
                generations[channel] = generation
            }
            try await body(link, log, queue, try #require(generations[1]))
        }
    }

    /// In the order that RabbitMQ 4 gives them back in; 3.10 keeps any.
    static let headers = Table(unordered.entries.sorted { $0.key.description < $1.key.description })

    private static let unordered: Table = [
        "bool": .bool(true), "int8": .int8(-8), "uint8": .uint8(200), "int16": .int16(-16),
        "uint16": .uint16(60_000),
        "int32": .int32(-32), "uint32": .uint32(4_000_000_000), "int64": .int64(.min), "float": .float(1.5),
        "double": .double(-2.5), "decimal": .decimal(scale: 2, value: 12_345), "string": .text("größe"),
        "empty": .string([]), "bytes": .bytes([0, 255, 10]), "timestamp": .timestamp(1_800_000_000),
        "void": .void,
        "array": .array([.int32(1), .text("two"), .array([.void]), .table(["k": .bool(false)])]),
        "table": .table(["inner": .table([:]), "x-death": .array([.table(["count": .int64(3)])])]),
        "": .int32(0),
    ]

    @Test("all fourteen properties and every header type come back as they were")
    func properties() async throws {
        try await withQueue { link, log, queue, generation in
            let sent = Properties(
                contentType: "application/json", contentEncoding: "gzip", headers: Self.headers,
                deliveryMode: 2,
                priority: 3, correlationID: "corr", replyTo: "reply", expiration: "60000", messageID: "m-1",
                timestamp: 1_800_000_001, type: "t", userID: ShortString(try TestBroker.endpoint().user),
                appID: "app", clusterID: "cluster")
            link.publish(
                [publication(1, exchange: "", key: queue, mandatory: true, properties: sent)], on: 1,
                generation: generation)
            let delivery = try await log.delivery(0)
            #expect(delivery.properties == sent)
            #expect(delivery.body == .bytes([]))
            #expect(delivery.routingKey == queue)
            #expect(delivery.exchange.isEmpty)
            #expect(delivery.consumerTag == "c")
            #expect(!delivery.redelivered)
            link.acknowledge([delivery.tag], on: 0)
        }
    }

    @Test("absent properties stay absent, empty ones empty")
    func absent() async throws {
        try await withQueue { link, log, queue, generation in
            let empty = Properties(contentType: "", headers: [:], correlationID: "")
            link.publish(
                [
                    publication(1, exchange: "", key: queue),
                    publication(2, exchange: "", key: queue, properties: empty, body: [0]),
                ], on: 1, generation: generation)
            let first = try await log.delivery(0)
            #expect(first.properties == Properties())
            let second = try await log.delivery(0)
            #expect(second.properties == empty)
            #expect(second.body == .bytes([0]))
            link.acknowledge([first.tag, second.tag], on: 0)
        }
    }

    @Test(
        "bodies of every size around the frame size come back, and at once",
        arguments: [1, 131_063, 131_064, 131_065, 262_128, 262_129, 3_000_000])
    func sizes(size: Int) async throws {
        try await withQueue { link, log, queue, generation in
            var body = [UInt8](repeating: 0, count: size)
            for index in body.indices { body[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
            link.publish(
                [publication(9, exchange: "", key: queue, body: body)], on: 1, generation: generation)
            let delivery = try await log.delivery(0)
            #expect(delivery.body == .bytes(body))
            link.acknowledge([delivery.tag], on: 0)
        }
    }

    @Test("a body above the limit is delivered without its bytes")
    func discarded() async throws {
        try await withQueue(maximumBodyBytes: 200_000) { link, log, queue, generation in
            link.publish(
                [
                    publication(1, exchange: "", key: queue, body: [UInt8](repeating: 1, count: 200_001)),
                    publication(2, exchange: "", key: queue, body: [UInt8](repeating: 1, count: 200_000)),
                ], on: 1, generation: generation)
            let dropped = try await log.delivery(0)
            #expect(dropped.body == .discarded(size: 200_001))
            let held = try await log.delivery(0)
            #expect(held.body == .bytes([UInt8](repeating: 1, count: 200_000)))
        }
    }

    @Test("thousands go through, each confirmed once and delivered once")
    func many() async throws {
        try await withQueue(prefetch: 1000) { link, log, queue, generation in
            let count = 5000
            for start in stride(from: 0, to: count, by: 250) {
                let batch = (start..<start + 250).map { id in
                    publication(UInt64(id), exchange: "", key: queue, body: Array(String(id).utf8))
                }
                link.publish(batch, on: 1, generation: generation)
            }
            var confirmed = Set<UInt64>()
            var bodies: [Body] = []
            while confirmed.count < count || bodies.count < count {
                let event = try await log.next("the rest of \(bodies.count) deliveries") { $0 }
                switch event {
                case .delivery(0, let delivery):
                    bodies.append(delivery.body)
                    link.acknowledge([delivery.tag], on: 0)
                case .confirmed(1, let ids):
                    #expect(confirmed.isDisjoint(with: ids))
                    confirmed.formUnion(ids)
                default:
                    Issue.record("unexpected: \(event)")
                    return
                }
            }
            #expect(bodies == (0..<count).map { .bytes(Array(String($0).utf8)) })
        }
    }

    @Test("what no queue takes comes back, recognised by its message id")
    func returned() async throws {
        try await withQueue { link, log, queue, generation in
            link.publish(
                [
                    publication(1, exchange: "", key: "nobody", mandatory: true, messageID: "a"),
                    publication(2, exchange: "", key: queue, mandatory: true, messageID: "b"),
                    publication(
                        3, exchange: "", key: "nobody", mandatory: true, messageID: "c", body: [1, 2]),
                    publication(4, exchange: "", key: "nobody"),
                ], on: 1, generation: generation)
            let outcomes = try await log.outcomes(4, on: 1)
            #expect(outcomes.confirmed.sorted() == [2, 4])
            #expect(outcomes.returned.sorted() == [1, 3])
        }
    }

    @Test("properties that fit no frame are refused here, and the channel lives on")
    func oversized() async throws {
        try await withQueue { link, log, queue, generation in
            let large = Properties(headers: ["k": .bytes([UInt8](repeating: 0, count: 131_072))])
            link.publish(
                [
                    publication(1, exchange: "", key: queue, properties: large),
                    publication(2, exchange: "", key: queue),
                ], on: 1, generation: generation)
            let outcomes = try await log.outcomes(2, on: 1)
            #expect(outcomes.refused == [1])
            #expect(outcomes.confirmed == [2])
        }
    }
}
