package import AMQP

/// Messages that a delivery waits for besides its events: replies, and dead letters.
///
/// A pure value, one for each channel. Everything is kept until the broker has taken or refused it, and sent again when
/// the channel is lost. A dead letter is the last trace of a command, so it is tried until it is taken. A reply is owed
/// once and nobody's queue is our business: its queue has a while from its first refusal on, as one that is replicated
/// refuses everything until it has a leader again; after that, what it refuses is dropped at once, so that a queue which is
/// full holds up nobody for longer, until it has refused nothing for a minute. Answers that no delivery waits for (job 0) are
/// only kept for a moment and a number of bytes: who asked will ask again.
package struct ReplyPublisher {
    package enum Persistence {
        /// Dropped when its queue has refused for a while, after `patience` without a confirm, or when it closes the channel all by itself.
        case droppedWhenRefused
        /// Tried for ever.
        case untilTaken
    }

    /// A reference to what never changes: it is looked at again with each end that arrives.
    package final class Message {
        package let exchange: ShortString
        package let routingKey: ShortString
        package let properties: Properties
        package let body: [UInt8]
        package let mandatory: Bool
        /// The job that waits for it.
        package let job: UInt64

        package init(
            exchange: ShortString, routingKey: ShortString, properties: Properties, body: [UInt8],
            mandatory: Bool, job: UInt64
        ) {
            self.exchange = exchange
            self.routingKey = routingKey
            self.properties = properties
            self.body = body
            self.mandatory = mandatory
            self.job = job
        }
    }

    private struct Entry {
        let message: Message
        var isSent = false
        var sentAt: Int64
        let since: Int64
    }

    /// A queue that refuses, from its first refusal on.
    private struct Refusals {
        let since: Int64
        var last: Int64
    }

    private let persistence: Persistence
    private var entries: [UInt64: Entry] = [:]
    /// Not sent yet, or to be sent again; in order.
    private var waiting: [UInt64] = []
    private var nextID: UInt64 = 1
    /// Messages that were on their way when the channel was closed with an error: they go one at a time, until it is
    /// known which of them closes it.
    private var suspects: Set<UInt64> = []
    private var refusals: [ShortString: Refusals] = [:]
    private var sentCount = 0
    private var unowedBytes = 0
    /// Of bodies that are not small.
    private var largeBytes = 0
    /// True while the channel is closed by an error of its own: it is not the broker that is away.
    private var isBroken = false
    private var nextCheckAt: Int64 = 0

    private static let retryInterval: Int64 = 1_000
    private static let confirmTimeout: Int64 = 10_000
    private static let patience: Int64 = 60_000
    private static let unowedPatience: Int64 = 20_000
    /// Longer than a replicated queue is without a leader.
    private static let refusalPatience: Int64 = 20_000
    private static let refusalMemory: Int64 = 60_000
    private static let checkInterval: Int64 = 250
    private static let mostUnowedBytes = 8 << 20

    package init(_ persistence: Persistence) { self.persistence = persistence }

    package var isEmpty: Bool { entries.isEmpty }

    /// False where a large body is too much beside those that wait. The budget of the channel it came on ends with that
    /// channel, a letter does not.
    func hasRoom(for body: [UInt8]) -> Bool {
        Self.largeBytes(body) == 0 || largeBytes + body.count <= WorkerPlans.largeBodyBudget
    }

    private static func largeBytes(_ body: [UInt8]) -> Int {
        body.count > ChannelPlan.smallBodyBytes ? body.count : 0
    }

    package mutating func enqueue(_ message: Message, at uptime: Int64) {
        if message.job == 0 {
            guard unowedBytes + message.body.count <= Self.mostUnowedBytes else { return }
            unowedBytes += message.body.count
        }
        largeBytes += Self.largeBytes(message.body)
        entries[nextID] = Entry(message: message, sentAt: uptime, since: uptime)
        waiting.append(nextID)
        nextID += 1
    }

    /// What to publish now, in order.
    package mutating func next(at uptime: Int64) -> [Publication] {
        isBroken = false
        guard !waiting.isEmpty else { return [] }
        var publications: [Publication] = []
        var later: [UInt64] = []
        for id in waiting {
            guard var entry = entries[id] else { continue }
            guard suspects.isEmpty || sentCount == 0, entry.sentAt <= uptime else {
                later.append(id)
                continue
            }
            entry.isSent = true
            sentCount += 1
            entry.sentAt = uptime
            entries[id] = entry
            publications.append(publication(entry.message, id: id))
        }
        waiting = later
        return publications
    }

    private func publication(_ message: Message, id: UInt64) -> Publication {
        Publication(
            id: id, exchange: message.exchange, routingKey: message.routingKey, mandatory: message.mandatory,
            properties: message.properties, body: message.body)
    }

    /// The broker has them: the jobs that waited.
    package mutating func confirmed(_ ids: [UInt64]) -> [UInt64] {
        ids.compactMap { id in
            suspects.remove(id)
            guard let entry = entries.removeValue(forKey: id) else { return nil }
            if entry.isSent { sentCount -= 1 }
            largeBytes -= Self.largeBytes(entry.message.body)
            if entry.message.job == 0 { unowedBytes -= entry.message.body.count }
            return entry.message.job
        }
    }

    /// The broker would not have them, or no queue took them: the jobs of those that are dropped.
    package mutating func refused(_ ids: [UInt64], at uptime: Int64) -> [UInt64] {
        var dropped: [UInt64] = []
        for id in ids {
            guard let message = entries[id]?.message else { continue }
            if persistence == .untilTaken || hasPatience(with: message.routingKey, at: uptime) {
                retry(id, at: uptime + Self.retryInterval)
            } else {
                dropped.append(id)
            }
        }
        return confirmed(dropped)
    }

    private mutating func hasPatience(with queue: ShortString, at uptime: Int64) -> Bool {
        let since = refusals[queue]?.since ?? uptime
        refusals[queue] = Refusals(since: since, last: uptime)
        return uptime - since < Self.refusalPatience
    }

    /// Why a channel was closed.
    package enum Loss: Sendable {
        /// Its connection ended, or it was asked for.
        case withConnection
        /// No right on the exchange, or no exchange: that says nothing of the messages, and holds for all of them.
        case exchange
        /// Anything else that the broker says of a channel: a message may have closed it.
        case message

        package init(_ error: AMQPError?) {
            switch error {
            case .some(let error) where error.scope == .channel:
                self = error.kind == .accessRefused || error.kind == .notFound ? .exchange : .message
            default: self = .withConnection
            }
        }
    }

    /// The channel is gone: what was on its way is sent again. Returns the job of a message that is dropped, because it
    /// was alone when the broker closed the channel over it.
    package mutating func channelLost(_ loss: Loss, at uptime: Int64) -> [UInt64] {
        isBroken = loss != .withConnection
        let sent = entries.filter { $0.value.isSent }.map(\.key).sorted()
        let isFound = loss == .message && sent.count == 1 && suspects.contains(sent[0])
        if isFound, persistence == .droppedWhenRefused { return confirmed(sent) }
        if loss == .message { suspects.formUnion(sent) }
        for id in sent {
            entries[id]?.isSent = false
            entries[id]?.sentAt = uptime
        }
        sentCount = 0
        // One that closes the channel whenever it is sent must not keep its neighbours from being sent at all.
        waiting = isFound ? waiting + sent : sent + waiting
        return []
    }

    /// The broker is not blocked any more: its time for a confirm begins now.
    package mutating func restartClocks(at uptime: Int64) {
        for (id, entry) in entries where entry.isSent { entries[id]?.sentAt = uptime }
    }

    /// What time asks for: sends again what has had no confirm, and lets go what nobody will take. Returns the jobs
    /// of what was dropped.
    package mutating func tick(at uptime: Int64) -> [UInt64] {
        guard uptime >= nextCheckAt else { return [] }
        nextCheckAt = uptime + Self.checkInterval
        if !refusals.isEmpty { refusals = refusals.filter { uptime - $0.value.last < Self.refusalMemory } }
        var dropped: [UInt64] = []
        var overdue: [UInt64] = []
        for (id, entry) in entries {
            let age = uptime - entry.since
            if entry.message.job == 0, age >= Self.unowedPatience {
                dropped.append(id)
            } else if entry.isSent, uptime - entry.sentAt >= Self.confirmTimeout {
                let isOver = persistence == .droppedWhenRefused && age >= Self.patience
                if isOver { dropped.append(id) } else { overdue.append(id) }
            } else if !entry.isSent, isBroken, persistence == .droppedWhenRefused, age >= Self.patience {
                dropped.append(id)
            }
        }
        for id in overdue.sorted() { retry(id, at: uptime) }
        guard !dropped.isEmpty else { return [] }
        let jobs = confirmed(dropped.sorted())
        waiting.removeAll { entries[$0] == nil }
        return jobs
    }

    private mutating func retry(_ id: UInt64, at uptime: Int64) {
        guard let entry = entries[id] else { return }
        if entry.isSent { sentCount -= 1 }
        entries[id]?.isSent = false
        entries[id]?.sentAt = uptime
        waiting.append(id)
    }
}
