import AMQP

/// What a client sends.
enum ClientFrame {
    case open(Int, UInt64, ChannelPlan)
    case publish(Int, UInt64, Publication)
    case acknowledge(Int, UInt64, [UInt64])
    case reject(Int, UInt64, UInt64, requeue: Bool)
    case close(Int, UInt64)
    case goodbye
}

/// What the broker sends; channels by index and generation.
enum ServerFrame {
    case opened(Int, UInt64)
    /// Nil where the client asked for it.
    case closed(Int, UInt64, AMQPError?)
    case cancelled(Int, UInt64, ShortString)
    case delivery(Int, Delivery)
    case confirmed(Int, UInt64, [UInt64])
    case refused(Int, UInt64, [UInt64])
    case returned(Int, UInt64, UInt64)
    case blocked
    case unblocked
}

/// One connection, with both ends of its wire. Either end may believe it alive when the other knows better.
final class BrokerConnection {
    let number: Int
    private let world: World
    private let broker: Broker
    private(set) var channels: [ServerChannel] = []
    private(set) var isOpen = true
    /// The client's end; nil once the client has let go.
    weak var client: SimulatedLink?
    private lazy var incoming = Pipe<ClientFrame>(world: world) { [unowned self] in receive($0) }
    private lazy var outgoing = Pipe<ServerFrame>(world: world) { [unowned self] frame in
        client?.receive(frame, from: self)
    }

    init(number: Int, world: World, broker: Broker, client: SimulatedLink) {
        self.number = number
        self.world = world
        self.broker = broker
        self.client = client
    }

    // MARK: The wire

    func toBroker(_ frame: ClientFrame) { incoming.send(frame, delay: world.latency()) }

    func toClient(_ frame: ServerFrame) {
        guard client != nil else { return }
        outgoing.send(frame, delay: world.latency())
    }

    /// The client's process stands still, or goes on.
    func freeze(_ isFrozen: Bool) { if isFrozen { outgoing.hold() } else { outgoing.release() } }

    /// The wire is gone. The client notices at once, the broker after a while; of what was under way each gets a
    /// beginning.
    ///
    /// - Parameter client: false where there is no client left that could notice.
    func cut(noticedAfter delay: Int64, tellsClient: Bool = true) {
        let last = outgoing.cut()
        let client = client
        self.client = nil
        if tellsClient, let client {
            for frame in last { client.receive(frame, from: self) }
            client.lost(self, .lostConnection)
        }
        for frame in incoming.cut() where isOpen { receive(frame) }
        world.timeline.after(delay) { [self] in close() }
    }

    /// The client has closed politely: everything that it sent before arrives.
    func letGo() {
        toBroker(.goodbye)
        client = nil
    }

    /// The broker's end is over.
    func close() {
        guard isOpen else { return }
        isOpen = false
        for channel in channels { channel.end(broker: broker) }
        channels = []
        broker.forget(self)
        if let client {
            self.client = nil
            client.lost(self, .lostConnection)
        }
    }

    // MARK: The broker's end

    private func receive(_ frame: ClientFrame) {
        guard isOpen else { return }
        switch frame {
        case .open(let index, let generation, let plan):
            open(index, generation, plan)
        case .publish(let index, let generation, let publication):
            guard !broker.isBlocked else {
                incoming.holdBack(frame)
                return toClient(.blocked)
            }
            guard let channel = channel(index, generation) else { return }
            broker.publish(publication, on: channel)
        case .acknowledge(let index, let generation, let numbers):
            guard let channel = channel(index, generation) else { return }
            for number in numbers {
                guard let (queue, _) = channel.settle(number) else { continue }
                broker.dispatch(queue)
            }
        case .reject(let index, let generation, let number, let requeue):
            guard let (queue, stored) = channel(index, generation)?.settle(number) else { return }
            if requeue { queue.requeue([stored]) } else { broker.deadLetter(stored.message, of: queue) }
            broker.dispatch(queue)
        case .close(let index, let generation):
            if let channel = channel(index, generation) { end(channel) }
            toClient(.closed(index, generation, nil))
        case .goodbye:
            close()
        }
    }

    private func channel(_ index: Int, _ generation: UInt64) -> ServerChannel? {
        channels.first { $0.index == index && $0.generation == generation }
    }

    private func open(_ index: Int, _ generation: UInt64, _ plan: ChannelPlan) {
        let channel = ServerChannel(index: index, generation: generation, connection: self, world: world)
        channels.append(channel)
        if let error = channel.open(plan, broker: broker) { return fail(channel, error) }
        toClient(.opened(index, generation))
        for consumer in plan.consumers {
            if let queue = broker.queue(consumer.queue) { broker.dispatch(queue) }
        }
    }

    /// The broker closes a channel over an error.
    func fail(_ channel: ServerChannel, _ error: AMQPError) {
        world.history.note("channel \(channel.index) of \(client?.name ?? "nobody") closed: \(error)")
        end(channel)
        toClient(.closed(channel.index, channel.generation, error))
    }

    private func end(_ channel: ServerChannel) {
        channels.removeAll { $0 === channel }
        channel.end(broker: broker)
    }

    func unblock() {
        guard incoming.isHeld else { return }
        toClient(.unblocked)
        incoming.release()
    }
}

extension AMQPError {
    static let lostConnection = AMQPError(scope: .connection, kind: .socketClosed, text: "cut")
    static let unreachable = AMQPError(scope: .connection, kind: .unreachable, text: "down")

    static func notFound(_ name: ShortString) -> AMQPError {
        AMQPError(
            scope: .channel, kind: .notFound, code: 404, text: "no \(name)", isConfiguration: true)
    }
}
