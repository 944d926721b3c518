import Testing

@testable import AMQP

@Suite(.enabled(if: TestBroker.isThere, TestBroker.noBroker), .timeLimit(.minutes(1)))
struct RecoveryTests {
    @Test("a publish to a missing exchange ends its channel alone, which opens again")
    func missingExchange() async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(confirms: true), ChannelPlan(confirms: true),
                ChannelPlan(
                    declare: [TestBroker.queue(queue)], consumers: [ConsumerPlan(queue: queue, tag: "c")]),
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("missing-exchange"), plans) { link, log in
            var generations: [Int: UInt64] = [:]
            while generations.count < 3 {
                let (channel, generation) = try await log.next("three channels") { event in
                    if case .channelOpened(let channel, let generation) = event {
                        return (channel, generation)
                    }
                    return nil
                }
                generations[channel] = generation
            }
            let first = try #require(generations[0])
            link.publish([publication(7, exchange: "test.missing")], on: 0, generation: first)
            let (error, unknown) = try await log.closed(0)
            #expect(error?.kind == .notFound)
            #expect(error?.scope == .channel)
            #expect(error?.code == 404)
            #expect(error?.text.contains("test.missing") == true)
            #expect(unknown == [7])
            let second = try await log.opened(0)
            #expect(second > first)
            // Of the life before: dropped without a word.
            link.publish([publication(8, exchange: "", key: queue)], on: 0, generation: first)
            link.publish([publication(9, exchange: "", key: queue)], on: 0, generation: second)
            #expect(try await log.outcomes(1, on: 0).confirmed == [9])
            link.publish(
                [publication(10, exchange: "", key: queue)], on: 1, generation: try #require(generations[1]))
            #expect(try await log.outcomes(1, on: 1).confirmed == [10])
            let others = log.all.filter { event in
                if case .channelClosed(let channel, _, _, _) = event { return channel != 0 }
                if case .disconnected = event { return true }
                return false
            }
            #expect(others.isEmpty)
        }
    }

    @Test("a channel that is closed over a message opens again soon, and not only after the longest delay")
    func closedOverMessage() async throws {
        var configuration = try TestBroker.configuration("bad-message")
        configuration.backoff = Backoff(first: .milliseconds(20), maximum: .seconds(60))
        let plans: @Sendable () -> [ChannelPlan] = { [ChannelPlan(confirms: true)] }
        try await TestBroker.withLink(configuration, plans) { link, log in
            for number in 1...3 as ClosedRange<UInt64> {
                let generation = try await log.opened(0)
                let bad = Publication(
                    id: number, exchange: "", routingKey: "nobody", mandatory: false,
                    properties: Properties(userID: "somebody else"), body: [])
                link.publish([bad], on: 0, generation: generation)
                let (error, unknown) = try await log.closed(0)
                #expect(error?.kind == .preconditionFailed && error?.scope == .channel)
                #expect(unknown == [number])
            }
            _ = try await log.opened(0)
        }
    }

    @Test("an acknowledgement of an older life, or of nothing, harms nobody")
    func oldAcknowledgement() async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue, durable: true)], confirms: true, prefetch: 1,
                    consumers: [ConsumerPlan(queue: queue, tag: "c")])
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("old-ack"), plans) { link, log in
            let first = try await log.opened(0)
            link.publish([publication(1, exchange: "", key: queue)], on: 0, generation: first)
            let delivery = try await log.delivery(0)
            link.closeChannel(0)
            let (error, _) = try await log.closed(0)
            #expect(error == nil)
            link.openChannel(0)
            let second = try await log.opened(0)
            let again = try await log.delivery(0)
            #expect(again.redelivered)
            link.acknowledge([delivery.tag, DeliveryTag(generation: second, number: 99)], on: 0)
            link.reject(delivery.tag, requeue: false, on: 0)
            link.acknowledge([again.tag], on: 0)
            link.acknowledge([again.tag], on: 0)
            link.publish([publication(2, exchange: "", key: queue)], on: 0, generation: second)
            let last = try await log.delivery(0)
            #expect(!last.redelivered)
            link.acknowledge([last.tag], on: 0)
        }
    }

    @Test("a rejected delivery comes again, if that was asked for")
    func rejected() async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue)], confirms: true,
                    consumers: [ConsumerPlan(queue: queue, tag: "c")])
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("reject"), plans) { link, log in
            let generation = try await log.opened(0)
            link.publish([publication(1, exchange: "", key: queue)], on: 0, generation: generation)
            let first = try await log.delivery(0)
            link.reject(first.tag, requeue: true, on: 0)
            let second = try await log.delivery(0)
            #expect(second.redelivered)
            link.reject(second.tag, requeue: false, on: 0)
        }
    }

    @Test("everything asked for before a close is sent before it")
    func closeIsLast() async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(confirms: true),
                ChannelPlan(
                    declare: [TestBroker.queue(queue, durable: true)],
                    consumers: [ConsumerPlan(queue: queue, tag: "c", noAck: true)], startsOpen: false),
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("close"), plans) { link, log in
            link.openChannel(1)
            _ = try await log.opened(1)
            link.closeChannel(1)
            _ = try await log.closed(1)
            link.closeChannel(0)
            link.openChannel(0)
            let generation = try await log.opened(0)
            link.publish(
                (0..<1000).map { publication($0, exchange: "", key: queue) }, on: 0, generation: generation)
            link.closeChannel(0)
            _ = try await log.closed(0)
            link.openChannel(1)
            for _ in 0..<1000 { _ = try await log.delivery(1) }
        }
    }

    @Test("a wrong password is named")
    func wrongPassword() async throws {
        var endpoint = try TestBroker.endpoint()
        endpoint.password = Secret("wrong")
        try await refused(endpoint, [], kind: .accessRefused, code: 403)
    }

    @Test("a missing virtual host is named")
    func wrongVirtualHost() async throws {
        var endpoint = try TestBroker.endpoint()
        endpoint.virtualHost = "test.missing"
        try await refused(endpoint, [], kind: .notAllowed, code: 530)
    }

    private func refused(
        _ endpoint: Endpoint, _ plans: [ChannelPlan], kind: AMQPError.Kind, code: UInt16
    ) async throws {
        let configuration = try TestBroker.configuration("refused", endpoint: endpoint)
        try await TestBroker.withLink(configuration, { plans }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == kind)
            #expect(error.code == code)
            #expect(error.isConfiguration)
            #expect(error.scope == .connection)
            // It goes on trying.
            _ = try await log.disconnected()
        }
    }

    @Test("an inequivalent declaration is named and leaves the other channels alone")
    func inequivalent() async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue)], consumers: [ConsumerPlan(queue: queue, tag: "c")]),
                ChannelPlan(
                    declare: [TestBroker.queue(queue, arguments: ["x-max-length": .int64(1)])],
                    startsOpen: false),
                ChannelPlan(
                    declare: [
                        DeclarationStep(
                            .queue(
                                name: "test.missing", durable: true, exclusive: false, autoDelete: false,
                                arguments: [:]),
                            mode: .passive)
                    ], startsOpen: false),
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("inequivalent"), plans) { link, log in
            _ = try await log.opened(0)
            link.openChannel(1)
            let (error, _) = try await log.closed(1)
            #expect(error?.kind == .preconditionFailed)
            #expect(error?.isConfiguration == true)
            #expect(error?.text.contains("x-max-length") == true)
            link.openChannel(2)
            #expect(try await log.closed(2).error?.kind == .notFound)
        }
    }

    @Test("exchanges and bindings of both kinds are declared, and passively found")
    func topology() async throws {
        let (source, target, queue) = (
            try TestBroker.short("source"), try TestBroker.short("target"), try TestBroker.short("queue")
        )
        let declarations: [Declaration] = [
            .exchange(
                name: source, kind: "topic", durable: false, autoDelete: true, internal: false, arguments: [:]
            ),
            .exchange(
                name: target, kind: "fanout", durable: false, autoDelete: true, internal: true, arguments: [:]
            ),
            .queue(
                name: queue, durable: false, exclusive: true, autoDelete: false,
                arguments: ["x-expires": .int32(60_000)]),
            .bindExchange(destination: target, source: source, routingKey: "a.*", arguments: [:]),
            .bindQueue(queue: queue, exchange: target, routingKey: "", arguments: [:]),
        ]
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: declarations.map { DeclarationStep($0) }, confirms: true,
                    consumers: [ConsumerPlan(queue: queue, tag: "c", exclusive: true)]),
                ChannelPlan(
                    declare: declarations.map { DeclarationStep($0, mode: .passive) }, startsOpen: false),
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("topology"), plans) { link, log in
            let generation = try await log.opened(0)
            link.openChannel(1)
            _ = try await log.opened(1)
            link.publish([publication(1, exchange: source, key: "a.b")], on: 0, generation: generation)
            #expect(try await log.delivery(0).exchange == source)
        }
    }

    @Test("a reconnect asks for the channels anew and consumes again")
    func reconnect() async throws {
        let names = Names(prefix: TestBroker.unique("fresh"))
        let plans: @Sendable () -> [ChannelPlan] = {
            let name = names.next()
            return [
                ChannelPlan(
                    declare: [
                        DeclarationStep(
                            .queue(
                                name: name, durable: false, exclusive: true, autoDelete: true, arguments: [:])
                        )
                    ], confirms: true, consumers: [ConsumerPlan(queue: name, tag: "c")])
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("reconnect"), plans) { link, log in
            let first = try await log.opened(0)
            link.reconnect()
            #expect(try await log.closed(0).error?.kind == .reconnectRequested)
            #expect(try await log.disconnected().kind == .reconnectRequested)
            let second = try await log.opened(0)
            #expect(second > first)
            link.publish([publication(1, exchange: "", key: names.latest)], on: 0, generation: second)
            #expect(try await log.delivery(0).routingKey == names.latest)
        }
    }
}
