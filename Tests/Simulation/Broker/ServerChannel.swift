import AMQP

/// The broker's side of one life of a channel.
final class ServerChannel {
    enum Outcome { case confirmed, refused, returned }

    private struct Unacked {
        let number: UInt64
        let queue: BrokerQueue
        let stored: Stored
        let tag: ShortString
    }

    let index: Int
    let generation: UInt64
    unowned let connection: BrokerConnection
    private let world: World
    private(set) var isConfirming = false
    private var unacked: [Unacked] = []
    private var lastDelivery: UInt64 = 0
    private var waiting: [(id: UInt64, outcome: Outcome, message: Message)] = []
    private var isFlushing = false
    private(set) var isClosed = false

    init(index: Int, generation: UInt64, connection: BrokerConnection, world: World) {
        self.index = index
        self.generation = generation
        self.connection = connection
        self.world = world
    }

    /// Declares and consumes; the error with which the broker closes the channel instead.
    func open(_ plan: ChannelPlan, broker: Broker) -> AMQPError? {
        for step in plan.declare {
            if let error = broker.declare(step, for: connection) { return error }
        }
        isConfirming = plan.confirms
        for consumer in plan.consumers {
            guard let queue = broker.queue(consumer.queue) else { return .notFound(consumer.queue) }
            queue.add(
                BrokerQueue.Consumer(
                    channel: self, tag: consumer.tag, noAck: consumer.noAck, prefetch: Int(plan.prefetch)))
        }
        return nil
    }

    // MARK: Deliveries

    var unackedCount: Int { unacked.count }

    func unackedCount(tag: ShortString) -> Int { unacked.lazy.filter { $0.tag == tag }.count }

    func deliver(_ stored: Stored, of queue: BrokerQueue, to consumer: BrokerQueue.Consumer) {
        lastDelivery += 1
        if !consumer.noAck {
            unacked.append(
                Unacked(number: lastDelivery, queue: queue, stored: stored, tag: consumer.tag))
        }
        let message = stored.message
        connection.toClient(
            .delivery(
                index,
                Delivery(
                    consumerTag: consumer.tag, tag: DeliveryTag(generation: generation, number: lastDelivery),
                    redelivered: stored.isRedelivered, exchange: message.exchange,
                    routingKey: message.routingKey, properties: message.properties,
                    body: message.isOversized ? .discarded(size: 20 << 20) : .bytes(message.body))))
    }

    /// Ends deliveries; what they were of is to be dispatched again. Nil for a number that is not open.
    func settle(_ number: UInt64) -> (queue: BrokerQueue, stored: Stored)? {
        guard let position = unacked.firstIndex(where: { $0.number == number }) else { return nil }
        let gone = unacked.remove(at: position)
        return (gone.queue, gone.stored)
    }

    /// The broker forgets a queue: what was delivered of it is gone with it.
    func forget(_ queue: BrokerQueue) -> [Message] {
        let gone = unacked.filter { $0.queue === queue }.map(\.stored.message)
        unacked.removeAll { $0.queue === queue }
        return gone
    }

    /// The channel is over: its consumers go, and what they had comes back.
    func end(broker: Broker) {
        guard !isClosed else { return }
        isClosed = true
        waiting = []
        var touched: [BrokerQueue] = []
        for queue in broker.queuesInOrder where queue.consumers.contains(where: { $0.channel === self }) {
            queue.removeConsumers(of: self)
            touched.append(queue)
        }
        for one in unacked where !touched.contains(where: { $0 === one.queue }) { touched.append(one.queue) }
        for queue in touched { queue.requeue(unacked.filter { $0.queue === queue }.map(\.stored)) }
        unacked = []
        for queue in touched {
            broker.lostConsumers(queue)
            broker.dispatch(queue)
        }
    }

    // MARK: Confirms

    func answer(_ id: UInt64, _ outcome: Outcome, _ message: Message) {
        guard isConfirming else {
            message.isSettled = true
            return
        }
        if world.strikes(.lostConfirm, usual: 0.01) {
            world.history.inject(.lostConfirm, message.name)
            return
        }
        waiting.append((id, outcome, message))
        flushLater()
    }

    private func flushLater() {
        guard !isFlushing, !waiting.isEmpty else { return }
        isFlushing = true
        var delay = world.latency()
        if world.strikes(.lateConfirm, usual: 0.02) {
            delay = world.dice.skewed(500...25_000)
            world.history.inject(.lateConfirm, "\(delay) ms")
        }
        world.timeline.after(delay) { [self] in
            isFlushing = false
            guard !isClosed else { return }
            flush()
            flushLater()
        }
    }

    /// Answers some of what waits: all, a beginning, or any of it, so that confirms come out of order.
    private func flush() {
        let count = world.dice.int(1...waiting.count)
        var chosen = Array(waiting.indices.prefix(count))
        switch world.dice.int(0...3) {
        case 0: chosen = Array(waiting.indices)
        case 1: chosen = (0..<count).map { _ in world.dice.int(0...waiting.count - 1) }
        default: break
        }
        let taken = Set(chosen)
        var confirmed: [UInt64] = []
        var refused: [UInt64] = []
        for position in taken.sorted() {
            let (id, outcome, message) = waiting[position]
            message.isSettled = true
            switch outcome {
            case .confirmed: confirmed.append(id)
            case .refused: refused.append(id)
            case .returned: connection.toClient(.returned(index, generation, id))
            }
        }
        if !confirmed.isEmpty { connection.toClient(.confirmed(index, generation, confirmed)) }
        if !refused.isEmpty { connection.toClient(.refused(index, generation, refused)) }
        waiting = waiting.indices.filter { !taken.contains($0) }.map { waiting[$0] }
    }
}
