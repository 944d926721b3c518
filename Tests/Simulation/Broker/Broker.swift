import AMQP
import Contract

/// A broker with what Overtime uses of one: exchanges, queues, dead letters, confirms, alarms. It forgets on a crash
/// what it had not answered for.
final class Broker {
    final class Exchange {
        enum Destination: Equatable {
            case queue(ShortString)
            case exchange(ShortString)
        }

        let isFanout: Bool
        let isDirect: Bool
        /// Each message goes to one of its bindings, by its routing key.
        let isRing: Bool
        var bindings: [(destination: Destination, key: ShortString)] = []

        init(kind: ShortString) {
            isFanout = kind == "fanout"
            isDirect = kind == "direct"
            isRing = kind == "x-consistent-hash"
        }
    }

    private let world: World
    private var exchanges: [ShortString: Exchange] = [:]
    private var queues: [ShortString: BrokerQueue] = [:]
    private(set) var connections: [BrokerConnection] = []
    private var nextConnection = 1
    private var nextQueue = 1
    private(set) var isUp = true
    /// Grows with each restart.
    private(set) var life = 0
    private(set) var isBlocked = false
    /// Queues that their owners bind again as soon as the exchange is there: subscribers.
    private var standing: [(exchange: ShortString, queue: ShortString)] = []
    /// Told of each message that a queue has taken.
    var onArrival: (BrokerQueue, Message) -> Void = { _, _ in }
    /// Told of messages that went with a queue that was deleted.
    var onLoss: ([Message]) -> Void = { _ in }
    /// Asked whether a queue refuses a message.
    var refuses: (BrokerQueue, Message) -> Bool = { queue, _ in queue.isRefusing }

    init(world: World) { self.world = world }

    func queue(_ name: ShortString) -> BrokerQueue? { queues[name] }

    var queuesInOrder: [BrokerQueue] { queues.values.sorted { $0.order < $1.order } }

    // MARK: Objects

    func addSubscriber(_ name: ShortString, to exchange: ShortString?) {
        make(name, [:], isDurable: true)
        if let exchange { standing.append((exchange, name)) }
    }

    private func make(
        _ name: ShortString, _ arguments: Table, isDurable: Bool, isAutoDelete: Bool = false,
        owner: BrokerConnection? = nil
    ) {
        queues[name] = BrokerQueue(
            name: name, arguments: BrokerQueue.Arguments(arguments), isDurable: isDurable,
            isAutoDelete: isAutoDelete, owner: owner, order: nextQueue, world: world)
        nextQueue += 1
    }

    func declare(_ step: DeclarationStep, for connection: BrokerConnection?) -> AMQPError? {
        if step.mode == .passive { return missing(step.declaration) }
        switch step.declaration {
        case .exchange(let name, let kind, _, _, _, _):
            guard exchanges[name] == nil else { return nil }
            exchanges[name] = Exchange(kind: kind)
            for (exchange, queue) in standing where exchange == name {
                exchanges[name]?.bindings.append((.queue(queue), ""))
            }
        case .queue(let name, let isDurable, let isExclusive, let isAutoDelete, let arguments):
            guard let known = queues[name] else {
                make(
                    name, arguments, isDurable: isDurable, isAutoDelete: isAutoDelete,
                    owner: isExclusive ? connection : nil)
                return nil
            }
            guard known.owner == nil || known.owner === connection else {
                return AMQPError(scope: .channel, kind: .resourceLocked, code: 405, text: "exclusive")
            }
        case .bindQueue(let queue, let exchange, let key, _):
            guard queues[queue] != nil else { return .notFound(queue) }
            return bind(.queue(queue), to: exchange, key)
        case .bindExchange(let destination, let source, let key, _):
            guard exchanges[destination] != nil else { return .notFound(destination) }
            return bind(.exchange(destination), to: source, key)
        }
        return nil
    }

    /// What a look alone finds wrong; bindings cannot be looked up.
    private func missing(_ declaration: Declaration) -> AMQPError? {
        switch declaration {
        case .exchange(let name, _, _, _, _, _): exchanges[name] == nil ? .notFound(name) : nil
        case .queue(let name, _, _, _, _): queues[name] == nil ? .notFound(name) : nil
        case .bindQueue, .bindExchange: nil
        }
    }

    func declareDeadLetters() {
        guard queuesInOrder.contains(where: { !$0.undelivered.isEmpty }) else { return }
        for step in world.scenario.topology.declarations(.active, parts: [.dead]) {
            _ = declare(step, for: nil)
        }
    }

    private func bind(_ destination: Exchange.Destination, to name: ShortString, _ key: ShortString)
        -> AMQPError?
    {
        guard let exchange = exchanges[name] else { return .notFound(name) }
        let isKnown = exchange.bindings.contains { $0.destination == destination && $0.key == key }
        if !isKnown { exchange.bindings.append((destination, key)) }
        return nil
    }

    func deleteExchange(_ name: ShortString) {
        guard exchanges.removeValue(forKey: name) != nil else { return }
        for exchange in exchanges.values { exchange.bindings.removeAll { $0.destination == .exchange(name) } }
    }

    func deleteQueue(_ name: ShortString) {
        guard let queue = queues.removeValue(forKey: name) else { return }
        for exchange in exchanges.values { exchange.bindings.removeAll { $0.destination == .queue(name) } }
        var lost = queue.ready.map(\.message) + queue.undelivered
        for connection in connections { for channel in connection.channels { lost += channel.forget(queue) } }
        for consumer in queue.consumers {
            let channel = consumer.channel
            channel.connection.toClient(.cancelled(channel.index, channel.generation, consumer.tag))
        }
        onLoss(lost)
    }

    // MARK: Messages

    /// Takes a message; nil where the exchange does not exist.
    func route(_ message: Message, isMandatory: Bool) -> ServerChannel.Outcome? {
        var targets: [BrokerQueue] = []
        if message.exchange.isEmpty {
            if let queue = queues[message.routingKey] { targets.append(queue) }
        } else {
            guard let exchange = exchanges[message.exchange] else { return nil }
            collect(exchange, message.routingKey, into: &targets)
        }
        guard !targets.isEmpty else { return isMandatory ? .returned : .confirmed }
        var isRefused = false
        for queue in targets {
            // Each queue for itself: a tick may reach the other schedulers and not the worker.
            if message.properties.deliveryMode == 1, world.strikes(.lostTransient, usual: 0.1) {
                world.history.inject(.lostTransient)
                continue
            }
            if refuses(queue, message) {
                isRefused = true
                continue
            }
            queue.add(message)
            onArrival(queue, message)
        }
        for queue in targets { dispatch(queue) }
        return isRefused ? .refused : .confirmed
    }

    private func collect(_ exchange: Exchange, _ key: ShortString, into targets: inout [BrokerQueue]) {
        var bindings = exchange.bindings
        if exchange.isRing, !bindings.isEmpty {
            let hash = key.bytes.reduce(UInt64(14_695_981_039_346_656_037)) {
                ($0 ^ UInt64($1)) &* 1_099_511_628_211
            }
            bindings = [bindings[Int(hash % UInt64(bindings.count))]]
        }
        for (destination, pattern) in bindings
        where exchange.isFanout || exchange.isRing || pattern == key || (!exchange.isDirect && pattern == "#")
        {
            switch destination {
            case .queue(let name):
                if let queue = queues[name], !targets.contains(where: { $0 === queue }) {
                    targets.append(queue)
                }
            case .exchange(let name):
                if let next = exchanges[name] { collect(next, key, into: &targets) }
            }
        }
    }

    func publish(_ publication: Publication, on channel: ServerChannel) {
        let message = Message(publication)
        guard let outcome = route(message, isMandatory: publication.mandatory) else {
            return channel.connection.fail(channel, .notFound(publication.exchange))
        }
        channel.answer(publication.id, outcome, message)
    }

    func deadLetter(_ message: Message, of queue: BrokerQueue) {
        guard let name = queue.arguments.deadLetterExchange else { return }
        var properties = message.properties
        properties.expiration = nil
        var headers = properties.headers ?? [:]
        headers["x-death"] = .array([.text("dead-lettered")])
        properties.headers = headers
        let letter = Message(
            exchange: name, routingKey: message.routingKey, properties: properties, body: message.body,
            isOversized: message.isOversized)
        letter.isSettled = true
        guard route(letter, isMandatory: true) == .confirmed else { return queue.undelivered.append(message) }
    }

    /// What a broker does by itself: it looks at the heads of its queues, and tries dead letters again.
    func tidyUp() {
        for queue in queuesInOrder {
            let waiting = queue.undelivered
            queue.undelivered = []
            for message in waiting { deadLetter(message, of: queue) }
            dispatch(queue)
        }
    }

    func dispatch(_ queue: BrokerQueue) {
        for message in queue.takeExpired() { deadLetter(message, of: queue) }
        queue.dispatch()
    }

    // MARK: Life

    /// A new connection; nil where nobody answers.
    func connect(_ client: SimulatedLink) -> BrokerConnection? {
        guard isUp else { return nil }
        let connection = BrokerConnection(number: nextConnection, world: world, broker: self, client: client)
        nextConnection += 1
        connections.append(connection)
        return connection
    }

    func forget(_ connection: BrokerConnection) {
        connections.removeAll { $0 === connection }
        for queue in queuesInOrder where queue.owner === connection { remove(queue) }
    }

    /// An auto-delete queue goes with its last consumer.
    func lostConsumers(_ queue: BrokerQueue) {
        if queue.isAutoDelete, queue.consumers.isEmpty { remove(queue) }
    }

    private func remove(_ queue: BrokerQueue) {
        queues[queue.name] = nil
        for exchange in exchanges.values {
            exchange.bindings.removeAll { $0.destination == .queue(queue.name) }
        }
    }

    /// Dies and comes back: what it had not answered for may be gone.
    func restart(after delay: Int64) {
        isUp = false
        life += 1
        isBlocked = false
        for connection in connections {
            connection.cut(noticedAfter: 0)
            connection.close()
        }
        for queue in queuesInOrder { _ = queue.loseTail() }
        world.timeline.after(delay) { [self] in isUp = true }
    }

    func block(_ isBlocked: Bool) {
        self.isBlocked = isBlocked
        if !isBlocked { for connection in connections { connection.unblock() } }
    }
}
