@testable import AMQP

// The channel machine under any frames in any order, against a plain account of what it owes.
//
// The first bytes choose the plan; each further one is a step: a frame of the broker, or something that the link's
// caller does. Steps of the broker are mostly answers and whole messages, so that inputs get past the opening.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChannel(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    var input = FuzzInput(start, count)
    var run = ChannelRun(&input)
    while !input.isEmpty, !run.isOver { run.step(&input) }
    run.finish()
    return 0
}

private struct ChannelRun {
    private static let noAckTag: ShortString = "silent"
    private static let ackTag: ShortString = "heard"

    private var machine: ChannelMachine
    private var account: ChannelAccount
    private var nextPublication: UInt64 = 1
    private var nextDelivery: UInt64 = 1
    private(set) var isOver = false

    init(_ input: inout FuzzInput) {
        let shape = input.byte()
        var plan = ChannelPlan(
            confirms: shape & 1 != 0, prefetch: UInt16(shape >> 1 & 1), maximumBodyBytes: Int(input.byte()))
        if shape & 4 != 0 { plan.consumers.append(ConsumerPlan(queue: "q", tag: Self.ackTag)) }
        if shape & 8 != 0 { plan.consumers.append(ConsumerPlan(queue: "r", tag: Self.noAckTag, noAck: true)) }
        plan.countsMessages = shape & 32 != 0
        if shape & 64 != 0 {
            plan.declare.append(
                DeclarationStep(
                    .queue(name: "q", durable: true, exclusive: false, autoDelete: false, arguments: [:])))
        }
        machine = ChannelMachine(generation: 7, plan: plan)
        account = ChannelAccount(plan: plan, silent: Self.noAckTag)
        if shape & 16 != 0 { account.note(machine.start()) }
    }

    mutating func step(_ input: inout FuzzInput) {
        switch input.byte() & 0x1F {
        case 0: account.note(machine.start())
        case 1: deliver(&input, hasAnyNumber: false)
        case 2: deliver(&input, hasAnyNumber: true)
        case 3: receive(.deliver(method(&input, number: input.number())))
        case 4: receive(.returned(returned(&input)))
        case 5: receive(.header(bodySize: input.number(), properties: properties(&input)))
        case 6: receive(.body(input.bytes(Int(input.byte()))))
        case 7: receive(.confirm(tag: input.number(), multiple: input.flag(), isAck: true))
        case 8: receive(.confirm(tag: input.number(), multiple: input.flag(), isAck: false))
        case 9: receive(.reply(Self.replies[Int(input.byte()) % Self.replies.count]))
        case 10: receive(.cancel(consumerTag: Self.ackTag, noWait: input.flag()))
        case 11: receive(.flow(active: input.flag()))
        case 12: receive(.channelClose(Self.closed))
        case 13: receive(.channelCloseOK)
        case 30: receive(.queueDeclared(messages: UInt32(truncatingIfNeeded: input.number()), consumers: 0))
        case 14: receive(Self.strays[Int(input.byte()) % Self.strays.count])
        case 15...17: publish(&input)
        case 18, 19: acknowledge(&input)
        case 20: reject(&input)
        case 21: account.note(machine.requestClose())
        case 22: lose()
        case 23...27: answer()
        case 28: giveBack(&input)
        default: deliver(&input, hasAnyNumber: false)
        }
    }

    /// The account must be closed: every publication has had one end, and nothing follows.
    mutating func finish() {
        lose()
        account.finish()
        check(machine.start().isEmpty && machine.requestClose().isEmpty, "a life after the end")
        check((try? machine.receive(.flow(active: true))) == nil, "a frame was taken after the end")
    }

    private mutating func receive(_ frame: Frame) {
        do throws(AMQPError) {
            account.note(try machine.receive(frame))
        } catch {
            lose()
        }
    }

    private mutating func lose() {
        isOver = true
        account.note(machine.connectionLost(Self.closed))
        check(machine.isEnded, "a machine that goes on without a connection")
    }

    /// The answer that is awaited, so that inputs need no luck to open a channel.
    private mutating func answer() {
        if let reply = machine.awaited { receive(.reply(reply)) } else { account.note(machine.start()) }
    }

    private mutating func deliver(_ input: inout FuzzInput, hasAnyNumber: Bool) {
        let number = hasAnyNumber ? input.number() : nextDelivery
        nextDelivery = number &+ 1
        receive(.deliver(method(&input, number: number)))
        let body = input.bytes(Int(input.byte()))
        receive(.header(bodySize: UInt64(body.count), properties: Properties()))
        let middle = body.count / 2
        for part in [body[..<middle], body[middle...]] where !part.isEmpty { receive(.body(Array(part))) }
    }

    private mutating func publish(_ input: inout FuzzInput) {
        // The link publishes only where the channel may.
        guard machine.mayPublish else { return }
        let id = nextPublication
        nextPublication += 1
        let publication = Publication(
            id: id, exchange: "x", routingKey: ShortString(bytes: [input.byte() & 3]) ?? .empty,
            mandatory: input.flag(), properties: properties(&input), body: [])
        account.published(publication)
        machine.published(publication)
    }

    private mutating func acknowledge(_ input: inout FuzzInput) {
        let tags = (0..<Int(input.byte() & 7)).map { _ in
            DeliveryTag(generation: input.byte() == 0xFF ? 6 : 7, number: input.number())
        }
        let isOpen = machine.isOpen
        account.acknowledged(tags, isOpen: isOpen, by: machine.acknowledge(tags))
    }

    private mutating func reject(_ input: inout FuzzInput) {
        let tag = DeliveryTag(generation: input.byte() == 0xFF ? 6 : 7, number: input.number())
        let isOpen = machine.isOpen
        account.rejected(tag, isOpen: isOpen, by: machine.reject(tag, requeue: input.flag()))
    }

    /// A whole returned message.
    private mutating func giveBack(_ input: inout FuzzInput) {
        receive(.returned(returned(&input)))
        receive(.header(bodySize: 0, properties: properties(&input)))
    }

    private func method(_ input: inout FuzzInput, number: UInt64) -> DeliverMethod {
        DeliverMethod(
            consumerTag: input.flag() ? Self.noAckTag : Self.ackTag, deliveryTag: number, redelivered: false,
            exchange: "x", routingKey: "k")
    }

    private func returned(_ input: inout FuzzInput) -> ReturnMethod {
        ReturnMethod(
            code: 312, text: "NO_ROUTE", exchange: "x",
            routingKey: ShortString(bytes: [input.byte() & 3]) ?? .empty)
    }

    private func properties(_ input: inout FuzzInput) -> Properties {
        Properties(messageID: ShortString(bytes: [input.byte() & 3]))
    }

    private static let closed = AMQPError(scope: .channel, kind: .notFound, text: "closed")
    private static let replies: [Frame.Reply] = [
        .open, .exchangeDeclare, .queueDeclare, .queueBind, .exchangeBind, .qos, .confirmSelect, .consume,
    ]
    private static let strays: [Frame] = [
        .connectionClose(closed), .connectionCloseOK, .blocked(reason: ""), .unblocked, .other(0x003C_0048),
    ]
}
