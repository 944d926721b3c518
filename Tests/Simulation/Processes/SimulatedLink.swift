import AMQP
import Worker

/// A link without a socket: it behaves towards its process as the real one does, generations, wishes, late
/// publications and unknown outcomes included.
///
/// `@unchecked Sendable` because a simulation runs on one thread; the protocol asks for it.
final class SimulatedLink: LinkControl, @unchecked Sendable {
    private enum Request {
        case publish([Publication], channel: Int, generation: UInt64)
        case acknowledge([DeliveryTag], channel: Int)
        case reject(DeliveryTag, requeue: Bool, channel: Int)
        case open(Int)
        case close(Int)
    }

    let name: String
    private let world: World
    private let broker: Broker
    private unowned let process: Process
    private let plans: () -> [ChannelPlan]
    private let observer: ([LinkEvent]) -> Void

    private var connection: BrokerConnection?
    private(set) var channels: [LinkChannel] = []
    private var wishes: [Int: Bool] = [:]
    private var requests: [Request] = []
    private var wakesAt: Int64?
    private var isBlocked = false
    private var lastGeneration: UInt64 = 0
    private var failures = 0
    private var connectedAt: Int64 = 0
    private var isStopped = false

    init(
        name: String, world: World, broker: Broker, process: Process, plans: @escaping () -> [ChannelPlan],
        observer: @escaping ([LinkEvent]) -> Void
    ) {
        self.name = name
        self.world = world
        self.broker = broker
        self.process = process
        self.plans = plans
        self.observer = observer
    }

    var isConnected: Bool { connection != nil }

    // MARK: What its process asks

    func publish(_ publications: [Publication], on channel: Int, generation: UInt64) {
        guard !publications.isEmpty else { return }
        // A process that dies between two publications has handed over the first ones.
        for publication in publications {
            process.mayDieSending()
            put(.publish([publication], channel: channel, generation: generation))
        }
    }

    func acknowledge(_ tags: [DeliveryTag], on channel: Int) {
        guard !tags.isEmpty else { return }
        process.mayDieSending()
        put(.acknowledge(tags, channel: channel))
    }

    func reject(_ tag: DeliveryTag, requeue: Bool, on channel: Int) {
        put(.reject(tag, requeue: requeue, channel: channel))
    }

    func openChannel(_ channel: Int) { put(.open(channel)) }

    func closeChannel(_ channel: Int) { put(.close(channel)) }

    func start() { connectLater(world.latency()) }

    /// Ends politely: what was asked for is sent, then the connection closed.
    func stop() {
        guard !isStopped else { return }
        takeRequests()
        isStopped = true
        connection?.letGo()
        connection = nil
    }

    /// The process is gone. The broker may believe in the connection for a while.
    func die(noticedAfter delay: Int64) {
        isStopped = true
        connection?.cut(noticedAfter: delay, tellsClient: false)
        connection = nil
    }

    /// The network fails.
    func cut(noticedAfter delay: Int64) { connection?.cut(noticedAfter: delay) }

    /// The broker closes one of its channels over nothing that was done on it, such as a delivery held too long.
    func closeOneChannel() -> Bool {
        guard let connection, !connection.channels.isEmpty else { return false }
        let error = AMQPError(scope: .channel, kind: .preconditionFailed, code: 406, text: "timeout")
        connection.fail(world.dice.one(of: connection.channels), error)
        return true
    }

    func freeze(_ isFrozen: Bool) {
        connection?.freeze(isFrozen)
        if !isFrozen { wake(after: 0) }
    }

    private func put(_ request: Request) {
        guard !isStopped, !process.isDead else { return }
        requests.append(request)
        wake(after: process.clock.lag + world.dice.span(0...1))
    }

    private func wake(after delay: Int64) {
        let at = world.now + max(delay, 0)
        if let wakesAt, wakesAt <= at { return }
        wakesAt = at
        world.timeline.at(at) { [weak self] in self?.wakeUp() }
    }

    private func wakeUp() {
        guard let at = wakesAt, at <= world.now else { return }
        wakesAt = nil
        guard !isStopped, !process.isFrozen else { return }
        takeRequests()
        openDue()
        pump()
    }

    // MARK: Its thread

    /// Without a connection only wishes are noted.
    private func takeRequests() {
        let taken = requests
        requests = []
        for request in taken {
            switch request {
            case .publish(let publications, let index, let generation):
                guard channels.indices.contains(index), channels[index].isOpen(generation),
                    !channels[index].closesWhenSent
                else { continue }
                channels[index].outgoing += publications
            case .acknowledge(let tags, let index):
                guard channels.indices.contains(index), let connection else { continue }
                let numbers = tags.compactMap { channels[index].takeOpen($0) }
                guard !numbers.isEmpty else { continue }
                connection.toBroker(.acknowledge(index, channels[index].generation, numbers))
            case .reject(let tag, let requeue, let index):
                guard channels.indices.contains(index), let connection,
                    let number = channels[index].takeOpen(tag)
                else { continue }
                connection.toBroker(.reject(index, tag.generation, number, requeue: requeue))
            case .open(let index):
                wishes[index] = true
                guard channels.indices.contains(index), channels[index].state == .none,
                    channels[index].opensAt == nil
                else { continue }
                channels[index].opensAt = world.now
            case .close(let index):
                wishes[index] = false
                guard channels.indices.contains(index) else { continue }
                channels[index].opensAt = nil
                if channels[index].state != .none { channels[index].closesWhenSent = true }
            }
        }
        pump()
    }

    private func pump() {
        guard let connection else { return }
        for index in channels.indices {
            if channels[index].state == .open, !isBlocked {
                for publication in channels[index].outgoing {
                    channels[index].unsettled.append(publication.id)
                    connection.toBroker(.publish(index, channels[index].generation, publication))
                }
                channels[index].outgoing = []
            }
            if channels[index].closesWhenSent, channels[index].outgoing.isEmpty {
                channels[index].closesWhenSent = false
                close(index, because: nil)
            }
        }
    }

    private func close(_ index: Int, because error: AMQPError?) {
        guard channels[index].state == .open || channels[index].state == .opening else { return }
        channels[index].state = .closing(error)
        connection?.toBroker(.close(index, channels[index].generation))
    }

    private func openDue() {
        guard let connection, !isBlocked else { return }
        for index in channels.indices {
            guard let due = channels[index].opensAt else { continue }
            guard due <= world.now else {
                wake(after: due - world.now)
                continue
            }
            lastGeneration += 1
            channels[index].begin(generation: lastGeneration)
            connection.toBroker(.open(index, lastGeneration, plans()[index]))
        }
    }

    private func connectLater(_ delay: Int64) {
        world.timeline.after(delay) { [weak self] in
            guard let self, !isStopped else { return }
            guard !process.isFrozen else { return connectLater(500) }
            observer([.connecting(attempt: failures + 1)])
            guard let made = broker.connect(self) else { return failed(.unreachable) }
            connection = made
            connectedAt = world.now
            channels = plans().map { _ in LinkChannel() }
            for index in channels.indices where wishes[index] ?? plans()[index].startsOpen {
                channels[index].opensAt = world.now
            }
            observer([.connected(brokerVersion: "simulated", properties: [:])])
            world.history.note("\(name) connected")
            wake(after: 0)
        }
    }

    private func failed(_ error: AMQPError) {
        if world.now - connectedAt >= 10_000 { failures = 0 }
        failures += 1
        let delay = backoff(failures)
        observer([.disconnected(error, retryInMilliseconds: delay)])
        connectLater(delay)
    }

    private func backoff(_ failures: Int) -> Int64 {
        let full = min(10_000, Int64(100) << Int64(min(failures - 1, 20)))
        return full - world.dice.span(0...full / 4)
    }

    // MARK: What the broker sends

    func lost(_ connection: BrokerConnection, _ error: AMQPError) {
        guard self.connection === connection, !isStopped else { return }
        self.connection = nil
        isBlocked = false
        world.history.note("\(name) lost its connection")
        var events: [LinkEvent] = []
        for index in channels.indices where channels[index].state != .none {
            events.append(ended(index, channels[index].reason ?? error))
        }
        channels = []
        observer(events)
        failed(error)
    }

    private func ended(_ index: Int, _ error: AMQPError?) -> LinkEvent {
        let channel = channels[index]
        channels[index].end()
        return .channelClosed(
            index, generation: channel.generation, error,
            unknown: channel.unsettled + channel.outgoing.map(\.id))
    }

    func receive(_ frame: ServerFrame, from connection: BrokerConnection) {
        guard self.connection === connection, !isStopped else { return }
        switch frame {
        case .blocked:
            isBlocked = true
            world.history.note("\(name) is blocked")
            observer([.blocked(reason: "simulated")])
        case .unblocked:
            isBlocked = false
            world.history.note("\(name) is unblocked")
            observer([.unblocked])
            wake(after: 0)
        case .opened(let index, let generation):
            guard channels[index].generation == generation, channels[index].state == .opening else { return }
            channels[index].state = .open
            channels[index].openedAt = world.now
            world.history.note("\(name) opened channel \(index)")
            observer([.channelOpened(index, generation: generation)])
        case .closed(let index, let generation, let error):
            guard channels[index].generation == generation else { return }
            closed(index, error)
        case .cancelled(let index, let generation, let tag):
            guard channels[index].generation == generation else { return }
            close(
                index,
                because: AMQPError(scope: .channel, kind: .consumerCancelled, text: "cancelled \(tag)"))
        case .delivery(let index, let delivery):
            guard channels[index].isOpen(delivery.tag.generation) else { return }
            channels[index].openTags.insert(delivery.tag.number)
            observer([.delivery(index, delivery)])
        case .confirmed(let index, let generation, let ids):
            guard channels[index].settle(ids, generation) else { return }
            observer([.confirmed(index, ids)])
        case .refused(let index, let generation, let ids):
            guard channels[index].settle(ids, generation) else { return }
            observer([.refused(index, ids)])
        case .returned(let index, let generation, let id):
            guard channels[index].settle([id], generation) else { return }
            observer([.returned(index, id, code: 312, text: "NO_ROUTE")])
        }
    }

    private func closed(_ index: Int, _ told: AMQPError?) {
        guard channels[index].state != .none else { return }
        // Two closes that crossed: ours is the one that counts.
        if case .closing = channels[index].state, told != nil { return }
        let error = channels[index].reason ?? told
        let wasOpenFor = channels[index].openedAt.map { world.now - $0 } ?? 0
        observer([ended(index, error)])
        guard wishes[index] ?? plans()[index].startsOpen else { return }
        if error == nil {
            channels[index].failures = 0
            channels[index].opensAt = world.now
        } else {
            if wasOpenFor >= 10_000 { channels[index].failures = 0 }
            channels[index].failures += 1
            channels[index].opensAt = world.now + backoff(channels[index].failures)
        }
        wake(after: (channels[index].opensAt ?? world.now) - world.now)
    }
}
