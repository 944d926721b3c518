extension Body {
    /// What it counts towards a channel's budget.
    fileprivate var largeBytes: Int {
        guard case .bytes(let bytes) = self, bytes.count > ChannelPlan.smallBodyBytes else { return 0 }
        return bytes.count
    }
}

// What each kind of frame does to a channel's life.
extension ChannelMachine {
    mutating func nextStep() -> [Action] {
        guard let method = steps.popLast() else {
            awaited = nil
            state = .open
            let held = early
            early = []
            return [.opened] + held.map { .deliver($0) }
        }
        awaited = method.reply
        return [.send(method)]
    }

    mutating func replied(_ reply: Frame.Reply) throws(AMQPError) -> [Action] {
        switch state {
        case .opening:
            guard reply == awaited else { throw .protocolViolation("\(reply) was answered, not asked for") }
            return nextStep()
        case .closing:
            // The answer to the step that the close overtook.
            return []
        case .idle, .open, .ended:
            throw .protocolViolation("\(reply) was answered, not asked for")
        }
    }

    mutating func content(_ content: ContentAssembler.Content?) throws(AMQPError) -> [Action] {
        guard let content else { return [] }
        switch content.method {
        case .returned(let method):
            ledger.returned(method, messageID: content.properties.messageID)
            return []
        case .deliver(let method):
            if !silentConsumers.contains(method.consumerTag) {
                try window.delivered(method.deliveryTag, largeBytes: content.body.largeBytes)
            }
            let delivery = Delivery(
                consumerTag: method.consumerTag,
                tag: DeliveryTag(generation: generation, number: method.deliveryTag),
                redelivered: method.redelivered, exchange: method.exchange, routingKey: method.routingKey,
                properties: content.properties, body: content.body)
            switch state {
            case .open: return [.deliver(delivery)]
            case .opening: early.append(delivery)
            // The broker takes it back with the channel.
            case .closing, .idle, .ended: break
            }
            return []
        }
    }

    mutating func confirm(tag: UInt64, multiple: Bool, isAck: Bool) throws(AMQPError) -> [Action] {
        guard plan.confirms else { throw .protocolViolation("a confirm came on a channel without confirms") }
        let outcomes = try ledger.settle(tag: tag, multiple: multiple, isAck: isAck)
        var actions: [Action] = []
        if !outcomes.confirmed.isEmpty { actions.append(.confirmed(outcomes.confirmed)) }
        if !outcomes.refused.isEmpty { actions.append(.refused(outcomes.refused)) }
        for one in outcomes.returned { actions.append(.returned(one.id, code: one.code, text: one.text)) }
        return actions
    }

    mutating func cancelled(consumerTag: ShortString, noWait: Bool) -> [Action] {
        var actions: [Action] = noWait ? [] : [.send(.cancelOK(consumerTag: consumerTag))]
        switch state {
        case .opening, .open:
            state = .closing(
                AMQPError(
                    scope: .channel, kind: .consumerCancelled,
                    text: "the broker cancelled consumer \(consumerTag), whose queue is gone or unavailable"))
            actions.append(.send(.close))
        case .idle, .closing, .ended:
            break
        }
        return actions
    }

    mutating func channelClosed(_ error: AMQPError) -> [Action] {
        // Two closes that crossed: both are answered, and ours is the one that ends this life.
        if case .closing = state { return [.send(.closeOK)] }
        return [.send(.closeOK)] + end(error)
    }

    mutating func end(_ error: AMQPError?) -> [Action] {
        state = .ended
        awaited = nil
        steps = []
        early = []
        return [.closed(error, unknown: ledger.takeUnknown())]
    }
}
