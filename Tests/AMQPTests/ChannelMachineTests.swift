import Testing

@testable import AMQP

@Suite struct ChannelMachineTests {
    private static let error404 = AMQPError(
        scope: .channel, closeCode: 404, text: Array("NOT_FOUND".utf8), classID: 60, methodID: 40)

    private static func deliver(_ tag: UInt64, consumer: ShortString = "c") -> Frame {
        .deliver(
            DeliverMethod(
                consumerTag: consumer, deliveryTag: tag, redelivered: false, exchange: "x", routingKey: "k"))
    }

    private func opened(_ plan: ChannelPlan) throws -> ChannelMachine {
        var machine = ChannelMachine(generation: 3, plan: plan)
        var actions = machine.start()
        while case .send(let method)? = actions.first, let reply = method.reply {
            actions = try machine.receive(.reply(reply))
        }
        #expect(actions == [.opened])
        return machine
    }

    @Test("a channel declares, limits, confirms and consumes in this order")
    func order() throws {
        let queue = DeclarationStep(
            .queue(name: "q", durable: true, exclusive: false, autoDelete: false, arguments: [:]))
        let binding = Declaration.bindQueue(queue: "q", exchange: "x", routingKey: "k", arguments: [:])
        let consumer = ConsumerPlan(queue: "q", tag: "c")
        let plan = ChannelPlan(
            declare: [queue, DeclarationStep(binding, mode: .passive), DeclarationStep(binding)],
            confirms: true,
            prefetch: 5, consumers: [consumer])
        var machine = ChannelMachine(generation: 1, plan: plan)
        #expect(machine.start() == [.send(.open)])
        #expect(try machine.receive(.reply(.open)) == [.send(.declare(queue))])
        #expect(try machine.receive(.reply(.queueDeclare)) == [.send(.declare(DeclarationStep(binding)))])
        #expect(try machine.receive(.reply(.queueBind)) == [.send(.qos(prefetch: 5))])
        #expect(try machine.receive(.reply(.qos)) == [.send(.confirmSelect)])
        #expect(try machine.receive(.reply(.confirmSelect)) == [.send(.consume(consumer))])
        #expect(machine.awaitsReply)
        #expect(try machine.receive(.reply(.consume)) == [.opened])
        #expect(!machine.awaitsReply)
    }

    @Test("deliveries before the channel counts as open are told after it")
    func early() throws {
        let plan = ChannelPlan(consumers: [
            ConsumerPlan(queue: "q", tag: "c"), ConsumerPlan(queue: "r", tag: "d"),
        ])
        var machine = ChannelMachine(generation: 1, plan: plan)
        _ = machine.start()
        _ = try machine.receive(.reply(.open))
        _ = try machine.receive(.reply(.consume))
        _ = try machine.receive(Self.deliver(1))
        #expect(try machine.receive(.header(bodySize: 0, properties: Properties())) == [])
        let actions = try machine.receive(.reply(.consume))
        #expect(actions.count == 2)
        #expect(actions.first == .opened)
    }

    @Test("a close by the broker is answered, and what has no outcome is unknown")
    func closedByBroker() throws {
        var machine = try opened(ChannelPlan(confirms: true))
        machine.published(publication(1))
        machine.published(publication(2))
        #expect(try machine.receive(.confirm(tag: 1, multiple: false, isAck: true)) == [.confirmed([1])])
        #expect(
            try machine.receive(.channelClose(Self.error404)) == [
                .send(.closeOK), .closed(Self.error404, unknown: [2]),
            ])
        #expect(machine.isEnded)
        #expect(throws: AMQPError.self) {
            try machine.receive(.confirm(tag: 2, multiple: false, isAck: true))
        }
    }

    @Test("a close by the broker may break off a message")
    func closedInsideContent() throws {
        var machine = try opened(ChannelPlan())
        _ = try machine.receive(Self.deliver(1))
        #expect(try machine.receive(.channelClose(Self.error404)).contains(.send(.closeOK)))
    }

    @Test("a close on request counts outcomes until it is answered")
    func closedOnRequest() throws {
        var machine = try opened(ChannelPlan(confirms: true))
        machine.published(publication(1))
        machine.published(publication(2))
        #expect(machine.requestClose() == [.send(.close)])
        #expect(machine.requestClose() == [])
        #expect(machine.awaitsReply)
        #expect(try machine.receive(.confirm(tag: 1, multiple: false, isAck: true)) == [.confirmed([1])])
        #expect(try machine.receive(Self.deliver(1)) == [])
        #expect(try machine.receive(.header(bodySize: 0, properties: Properties())) == [])
        #expect(try machine.receive(.channelCloseOK) == [.closed(nil, unknown: [2])])
    }

    @Test("two closes that cross are both answered")
    func crossed() throws {
        var machine = try opened(ChannelPlan())
        _ = machine.requestClose()
        #expect(try machine.receive(.channelClose(Self.error404)) == [.send(.closeOK)])
        #expect(try machine.receive(.channelCloseOK) == [.closed(nil, unknown: [])])
    }

    @Test("a cancel is answered unless the broker waits for none", arguments: [true, false])
    func cancelled(noWait: Bool) throws {
        var machine = try opened(ChannelPlan(consumers: [ConsumerPlan(queue: "q", tag: "c")]))
        let actions = try machine.receive(.cancel(consumerTag: "c", noWait: noWait))
        #expect(actions == (noWait ? [] : [.send(.cancelOK(consumerTag: "c"))]) + [.send(.close)])
        guard case .closed(let error, _)? = try machine.receive(.channelCloseOK).first else {
            Issue.record("the channel did not close")
            return
        }
        #expect(error?.kind == .consumerCancelled)
        #expect(error?.isRetryable == true)
    }

    @Test("publications wait while the flow is off")
    func flow() throws {
        var machine = try opened(ChannelPlan())
        #expect(machine.mayPublish)
        #expect(try machine.receive(.flow(active: false)) == [.send(.flowOK(active: false))])
        #expect(!machine.mayPublish)
        _ = try machine.receive(.flow(active: true))
        #expect(machine.mayPublish)
    }

    @Test("tags of another generation settle nothing")
    func generations() throws {
        var machine = try opened(ChannelPlan(consumers: [ConsumerPlan(queue: "q", tag: "c")]))
        _ = try machine.receive(Self.deliver(1))
        _ = try machine.receive(.header(bodySize: 0, properties: Properties()))
        #expect(machine.acknowledge([DeliveryTag(generation: 2, number: 1)]) == [])
        #expect(machine.reject(DeliveryTag(generation: 2, number: 1), requeue: true) == [])
        #expect(
            machine.acknowledge([DeliveryTag(generation: 3, number: 1)]) == [
                .send(.acknowledge(tag: 1, multiple: false))
            ])
    }

    @Test("deliveries that need no acknowledgement get none")
    func noAck() throws {
        var machine = try opened(ChannelPlan(consumers: [ConsumerPlan(queue: "q", tag: "c", noAck: true)]))
        _ = try machine.receive(Self.deliver(1))
        _ = try machine.receive(.header(bodySize: 0, properties: Properties()))
        #expect(machine.acknowledge([DeliveryTag(generation: 3, number: 1)]) == [])
    }

    @Test(
        "what nobody asked for ends the connection",
        arguments: [
            Frame.reply(.queueDeclare), .channelCloseOK, .other(0x003C_0048), .connectionCloseOK, .unblocked,
            .body([1]), .header(bodySize: 1, properties: Properties()),
            .confirm(tag: 1, multiple: false, isAck: true),
        ])
    func violations(_ frame: Frame) throws {
        var machine = try opened(ChannelPlan())
        #expect(throws: AMQPError.self) { try machine.receive(frame) }
    }

    @Test("a method inside a message ends the connection")
    func insideContent() throws {
        var machine = try opened(ChannelPlan(confirms: true))
        _ = try machine.receive(Self.deliver(1))
        #expect(throws: AMQPError.self) { try machine.receive(.flow(active: true)) }
    }

    @Test("a lost connection makes every open publication unknown")
    func lost() throws {
        var machine = try opened(ChannelPlan(confirms: true))
        machine.published(publication(1))
        let error = AMQPError(scope: .connection, kind: .socketClosed, text: "")
        #expect(machine.connectionLost(error) == [.closed(error, unknown: [1])])
        #expect(machine.connectionLost(error) == [])
    }

    @Test("the messages of a declared queue are told where the plan asks, and before the opening")
    func counting() throws {
        let queue = DeclarationStep(
            .queue(name: "q", durable: true, exclusive: false, autoDelete: false, arguments: [:]),
            mode: .passive)
        for asks in [true, false] {
            var machine = ChannelMachine(
                generation: 1, plan: ChannelPlan(declare: [queue], countsMessages: asks))
            _ = machine.start()
            _ = try machine.receive(.reply(.open))
            let actions = try machine.receive(.queueDeclared(messages: 5, consumers: 2))
            #expect(actions == (asks ? [.counted(messages: 5, consumers: 2), .opened] : [.opened]))
        }
    }
}
