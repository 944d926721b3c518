import AMQP

/// What the played broker knows: its queues, channels, and what was published.
struct FakeBroker {
    struct Message: Equatable {
        let name: String
        let properties: Properties
        let body: Body
        var redelivered = false
        var consumerTag: ShortString = "overtime.commands"
    }

    struct Published: Equatable {
        let channel: Int
        let publication: Publication
    }

    enum Verdict { case confirm, refuse, returned, silence }

    /// What waits, by consuming channel.
    var queued: [Int: [Message]] = [:]
    /// What was delivered, by consuming channel and delivery number.
    var unacknowledged: [Int: [UInt64: Message]] = [:]
    private(set) var acknowledged: [String] = []
    private(set) var rejected: [String] = []
    /// Acknowledgements that a broker would close the channel for.
    private(set) var faults: [String] = []

    var isConsumerConnected = false
    /// Open channels with their generations.
    var consuming: [Int: UInt64] = [:]
    var publishing: [Int: UInt64] = [:]
    /// What the worker asked for last.
    var wishes: Set<Int> = []
    private var lastGeneration: UInt64 = 0
    private var lastNumber: [Int: UInt64] = [:]

    var published: [Published] = []
    /// Published and without an outcome.
    var outstanding: [Published] = []
    var verdict: (Int, Publication) -> Verdict = { _, _ in .confirm }
    /// Whether the last reaction told the worker anything.
    var hasReacted = false

    mutating func nextGeneration() -> UInt64 {
        lastGeneration += 1
        return lastGeneration
    }

    mutating func open(_ channel: Int) -> UInt64 {
        let generation = nextGeneration()
        consuming[channel] = generation
        lastNumber[channel] = 0
        return generation
    }

    /// Ends a consuming channel: what is unacknowledged goes back to the front, in order.
    mutating func close(_ channel: Int) -> UInt64? {
        let back = (unacknowledged[channel] ?? [:]).sorted { $0.key < $1.key }.map(\.value)
        unacknowledged[channel] = nil
        queued[channel] =
            back.map {
                var message = $0
                message.redelivered = true
                return message
            } + (queued[channel] ?? [])
        return consuming.removeValue(forKey: channel)
    }

    /// Hands out everything that waits for a channel.
    mutating func deliver(_ channel: Int) -> [Delivery] {
        guard let generation = consuming[channel] else { return [] }
        defer { queued[channel] = [] }
        return (queued[channel] ?? []).map { message in
            let number = (lastNumber[channel] ?? 0) + 1
            lastNumber[channel] = number
            unacknowledged[channel, default: [:]][number] = message
            return Delivery(
                consumerTag: message.consumerTag, tag: DeliveryTag(generation: generation, number: number),
                redelivered: message.redelivered, exchange: "", routingKey: "r",
                properties: message.properties, body: message.body)
        }
    }

    mutating func acknowledge(_ tags: [DeliveryTag], on channel: Int) {
        for tag in tags where consuming[channel] == tag.generation {
            if let message = unacknowledged[channel]?.removeValue(forKey: tag.number) {
                acknowledged.append(message.name)
            } else {
                faults.append("acknowledged \(tag.number) on \(channel) which was not unacknowledged")
            }
        }
    }

    mutating func reject(_ tag: DeliveryTag, on channel: Int) {
        guard consuming[channel] == tag.generation,
            let message = unacknowledged[channel]?.removeValue(forKey: tag.number)
        else { return }
        rejected.append(message.name)
    }

    mutating func forgetConnections() {
        for channel in Array(consuming.keys) { _ = close(channel) }
        isConsumerConnected = false
        publishing = [:]
        outstanding = []
        wishes = []
    }

    /// Whether nothing waits and nothing is unacknowledged on a channel.
    func isDone(_ channel: Int) -> Bool {
        (queued[channel] ?? []).isEmpty && (unacknowledged[channel] ?? [:]).isEmpty
    }
}
