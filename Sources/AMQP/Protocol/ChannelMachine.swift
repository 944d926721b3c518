/// One life of a channel, from `channel.open` to its close, as a value: frames go in, actions come out.
///
/// ```
///   start()            all replies           requestClose(), cancel
///  idle ────► opening(step) ────────► open ────────────────► closing ──── close-ok ──► ended
///                  │                    │                        ▲
///                  └── channel.close ───┴──► ended (close-ok sent)   connectionLost() ends every state
/// ```
///
/// | Event | Answer |
/// | --- | --- |
/// | basic.cancel | `cancel-ok` if asked for, then the channel is closed with `consumerCancelled` |
/// | channel.close | `close-ok`, and everything without an outcome is unknown |
/// | channel.flow | `flow-ok`; publications wait while it is off |
/// | an answer nobody waits for, broken content, an unknown number | the connection ends as `protocolViolation` |
///
/// Nothing here blocks or reads a clock: the link watches `awaitsReply` against its limit.
struct ChannelMachine: Sendable {
    enum Action: Hashable, Sendable {
        case send(ChannelMethod)
        case opened
        case counted(messages: UInt32, consumers: UInt32)
        case deliver(Delivery)
        case confirmed([UInt64])
        case refused([UInt64])
        case returned(UInt64, code: UInt16, text: String)
        case closed(AMQPError?, unknown: [UInt64])
    }

    enum State: Sendable {
        case idle
        case opening
        case open
        case closing(AMQPError?)
        case ended
    }

    let generation: UInt64
    let plan: ChannelPlan
    var state = State.idle
    /// What opening has still to send, last one first.
    var steps: [ChannelMethod]
    var awaited: Frame.Reply?
    private var assembler: ContentAssembler
    var ledger = ConfirmLedger()
    var window = AcknowledgementWindow()
    /// Deliveries that came before the last consumer was confirmed: nobody has heard of this generation yet.
    var early: [Delivery] = []
    private var isFlowing = true
    let silentConsumers: Set<ShortString>

    init(generation: UInt64, plan: ChannelPlan) {
        self.generation = generation
        self.plan = plan
        assembler = ContentAssembler(maximumBodyBytes: plan.maximumBodyBytes)
        silentConsumers = Set(plan.consumers.lazy.filter(\.noAck).map(\.tag))
        var steps: [ChannelMethod] = [.open]
        steps += plan.declare.lazy.filter(\.isSent).map { .declare($0) }
        if plan.prefetch > 0 { steps.append(.qos(prefetch: plan.prefetch)) }
        if plan.confirms { steps.append(.confirmSelect) }
        steps += plan.consumers.map { .consume($0) }
        if plan.settlesConsumers { steps.append(.qos(prefetch: plan.prefetch)) }
        self.steps = steps.reversed()
    }

    /// Whether the broker owes an answer: too late an answer is a lost connection.
    var awaitsReply: Bool {
        switch state {
        case .opening, .closing: true
        case .idle, .open, .ended: false
        }
    }

    var isOpen: Bool {
        if case .open = state { return true }
        return false
    }

    var isEnded: Bool {
        if case .ended = state { return true }
        return false
    }

    private var isEnding: Bool {
        switch state {
        case .closing, .ended: true
        case .idle, .opening, .open: false
        }
    }

    var mayPublish: Bool { isOpen && isFlowing }

    var unconfirmedCount: Int { ledger.openCount }

    mutating func start() -> [Action] {
        guard case .idle = state else { return [] }
        state = .opening
        return nextStep()
    }

    /// Notes a publication that is about to be sent.
    mutating func published(_ publication: Publication) {
        if plan.confirms { ledger.published(publication) }
    }

    /// Tags of other generations are dropped: their messages are on their way to somebody else.
    mutating func acknowledge(_ tags: [DeliveryTag]) -> [Action] {
        guard isOpen else { return [] }
        let numbers = tags.lazy.filter { [generation] in $0.generation == generation }.map(\.number)
        return window.acknowledge(numbers).map { .send($0) }
    }

    mutating func reject(_ tag: DeliveryTag, requeue: Bool) -> [Action] {
        guard isOpen, tag.generation == generation, let method = window.reject(tag.number, requeue: requeue)
        else {
            return []
        }
        return [.send(method)]
    }

    /// Closes without `basic.cancel`: after a cancel a successor overtakes what is still unacknowledged here, after
    /// a close the order is kept.
    mutating func requestClose() -> [Action] {
        switch state {
        case .idle:
            state = .ended
            return []
        case .opening, .open:
            state = .closing(nil)
            return [.send(.close)]
        case .closing, .ended:
            return []
        }
    }

    /// The connection is gone, or goes: whatever has no outcome is unknown.
    mutating func connectionLost(_ error: AMQPError?) -> [Action] {
        switch state {
        case .idle, .ended:
            state = .ended
            return []
        case .closing(let reason):
            return end(reason)
        case .opening, .open:
            return end(error)
        }
    }

    /// One frame of this channel. It throws what must end the whole connection.
    mutating func receive(_ frame: Frame) throws(AMQPError) -> [Action] {
        switch state {
        case .opening, .open, .closing: break
        case .idle, .ended: throw .protocolViolation("a frame came on a channel that is not open")
        }
        switch frame {
        case .header(let bodySize, let properties):
            return try content(
                assembler.header(
                    bodySize: bodySize, properties: properties,
                    largeBodyBudget: plan.largeBodyBudget - window.largeBytes))
        case .body(let bytes):
            return try content(assembler.body(bytes))
        default:
            break
        }
        // A peer may break off a content only by closing the channel.
        if case .channelClose(let error) = frame { return channelClosed(error) }
        guard !assembler.isInsideContent else { throw .protocolViolation("a method came inside a message") }
        switch frame {
        case .deliver(let method):
            try assembler.begin(.deliver(method))
            return []
        case .returned(let method):
            try assembler.begin(.returned(method))
            return []
        case .confirm(let tag, let multiple, let isAck):
            return try confirm(tag: tag, multiple: multiple, isAck: isAck)
        case .reply(let reply):
            return try replied(reply)
        case .queueDeclared(let messages, let consumers):
            let next = try replied(.queueDeclare)
            guard plan.countsMessages, !isEnding else { return next }
            return [.counted(messages: messages, consumers: consumers)] + next
        case .cancel(let consumerTag, let noWait):
            return cancelled(consumerTag: consumerTag, noWait: noWait)
        case .flow(let active):
            isFlowing = active
            return [.send(.flowOK(active: active))]
        case .channelCloseOK:
            guard case .closing(let error) = state else {
                throw .protocolViolation("a close was answered that was not asked for")
            }
            return end(error)
        case .header, .body, .channelClose:
            return []
        case .connectionClose, .connectionCloseOK, .blocked, .unblocked:
            throw .protocolViolation("a method of the connection came on a channel")
        case .other(let method):
            throw .protocolViolation("method \(method >> 16).\(method & 0xFFFF) was not asked for")
        }
    }
}
