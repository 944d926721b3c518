import AMQP

/// One queue: first in, first out; what comes back goes to its old place, marked as redelivered.
final class BrokerQueue {
    struct Arguments {
        var isQuorum = false
        var isStream = false
        var isSingleActive = false
        var timeToLive: Int64?
        var maximumLength: Int?
        var deadLetterExchange: ShortString?

        init(_ table: Table) {
            switch table["x-queue-type"]?.text {
            case "quorum": isQuorum = true
            case "stream": isStream = true
            default: break
            }
            if case .bool(true) = table["x-single-active-consumer"] { isSingleActive = true }
            timeToLive = table["x-message-ttl"]?.integer
            maximumLength = table["x-max-length"]?.integer.map(Int.init)
            if let name = table["x-dead-letter-exchange"]?.text { deadLetterExchange = ShortString(name) }
        }
    }

    struct Consumer {
        let channel: ServerChannel
        let tag: ShortString
        let noAck: Bool
        /// 0 for no limit.
        let prefetch: Int
    }

    let name: ShortString
    let arguments: Arguments
    let isDurable: Bool
    let isAutoDelete: Bool
    /// The connection that it goes with.
    let owner: BrokerConnection?
    let order: Int
    private(set) var ready: [Stored] = []
    private(set) var consumers: [Consumer] = []
    /// Takes nothing for now, as a full queue that refuses does.
    var isRefusing = false
    /// Dead letters that nobody takes yet: at least once means that they wait.
    var undelivered: [Message] = []
    private var turn = 0
    private var nextNumber: UInt64 = 1
    private let world: World

    init(
        name: ShortString, arguments: Arguments, isDurable: Bool, isAutoDelete: Bool,
        owner: BrokerConnection?, order: Int, world: World
    ) {
        self.name = name
        self.arguments = arguments
        self.isDurable = isDurable
        self.isAutoDelete = isAutoDelete
        self.owner = owner
        self.order = order
        self.world = world
    }

    func add(_ message: Message) {
        guard !arguments.isStream else { return }
        var expiresAt = arguments.timeToLive.map { world.now + $0 }
        if let own = message.properties.expiration?.string.flatMap(Int64.init) {
            expiresAt = min(expiresAt ?? .max, world.now + own)
        }
        ready.append(Stored(message: message, number: nextNumber, expiresAt: expiresAt))
        nextNumber += 1
        if let most = arguments.maximumLength, ready.count > most { ready.removeFirst(ready.count - most) }
    }

    /// Takes messages back to where they stood.
    func requeue(_ returned: [Stored]) {
        guard !returned.isEmpty else { return }
        ready += returned.map { stored in
            var stored = stored
            stored.isRedelivered = true
            return stored
        }
        ready.sort { $0.number < $1.number }
    }

    func purge() -> Int {
        defer { ready = [] }
        return ready.count
    }

    /// What has outlived its time at the head.
    func takeExpired() -> [Message] {
        var expired: [Message] = []
        while let at = ready.first?.expiresAt, at <= world.now { expired.append(ready.removeFirst().message) }
        return expired
    }

    /// The broker died: what it had answered for is still there; of the rest only a beginning.
    func loseTail() -> Int {
        guard isDurable else {
            defer { ready = [] }
            return ready.count
        }
        let before = ready.count
        if !arguments.isQuorum { ready.removeAll { $0.message.properties.deliveryMode != 2 } }
        let unsure = ready.reversed().prefix { !$0.message.isSettled }.count
        if unsure > 0 { ready.removeLast(world.dice.int(0...unsure)) }
        return before - ready.count
    }

    // MARK: Consumers

    func add(_ consumer: Consumer) { consumers.append(consumer) }

    func removeConsumers(of channel: ServerChannel) { consumers.removeAll { $0.channel === channel } }

    func dispatch() {
        while let first = ready.first, let consumer = nextConsumer() {
            ready.removeFirst()
            consumer.channel.deliver(first, of: self, to: consumer)
        }
    }

    private func nextConsumer() -> Consumer? {
        guard !consumers.isEmpty else { return nil }
        if arguments.isSingleActive { return hasCredit(consumers[0]) ? consumers[0] : nil }
        for step in 0..<consumers.count {
            let candidate = consumers[(turn + step) % consumers.count]
            guard hasCredit(candidate) else { continue }
            turn = (turn + step + 1) % consumers.count
            return candidate
        }
        return nil
    }

    private func hasCredit(_ consumer: Consumer) -> Bool {
        consumer.noAck || consumer.prefetch == 0
            || consumer.channel.unackedCount(tag: consumer.tag) < consumer.prefetch
    }
}
