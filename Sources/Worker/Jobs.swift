import AMQP

/// Deliveries in hand, each until nothing is owed for it any more; then it may be acknowledged.
///
/// A delivery is acknowledged last: when its reply or dead letter is settled and each of its events has had its first
/// confirm or refusal. A crash anywhere before leads to a redelivery, which its id makes harmless.
struct Jobs {
    /// A reference, so that what is owed changes in place: in a dictionary of values that cost as much as two look-ups.
    private final class Job {
        let channel: Int
        let tag: DeliveryTag
        var owed = 0
        /// When it arrived, by the monotonic clock; nil where nobody asks how long it took.
        let since: Int64?

        init(channel: Int, tag: DeliveryTag, since: Int64?) {
            self.channel = channel
            self.tag = tag
            self.since = since
        }
    }

    private var jobs: [UInt64: Job] = [:]
    private var nextID: UInt64 = 1
    private var finished: [Int: [DeliveryTag]] = [:]
    private var arrivals: [Int64] = []

    var isEmpty: Bool { jobs.isEmpty }
    var count: Int { jobs.count }

    /// Whether a delivery of a channel is in hand, or finished and not acknowledged yet. Looks at all of them.
    func holds(_ channel: Int) -> Bool {
        finished[channel]?.isEmpty == false || jobs.values.contains { $0.channel == channel }
    }

    /// Takes a delivery in hand, which arrived at a point of the monotonic clock.
    mutating func begin(_ tag: DeliveryTag, on channel: Int, since: Int64? = nil) -> UInt64 {
        let id = nextID
        nextID += 1
        jobs[id] = Job(channel: channel, tag: tag, since: since)
        return id
    }

    /// Adds to what is owed for a delivery.
    mutating func owe(_ count: Int, to id: UInt64) { jobs[id]?.owed += count }

    /// Ends a delivery that owes nothing.
    mutating func finishIfSettled(_ id: UInt64) {
        if let job = jobs[id] { finishIfSettled(id, job) }
    }

    private mutating func finishIfSettled(_ id: UInt64, _ job: Job) {
        guard job.owed == 0 else { return }
        jobs[id] = nil
        finished[job.channel, default: []].append(job.tag)
        if let since = job.since { arrivals.append(since) }
    }

    mutating func settle(_ ids: [UInt64]) {
        for id in ids {
            guard let job = jobs[id] else { continue }
            job.owed -= 1
            finishIfSettled(id, job)
        }
    }

    /// Forgets a delivery without acknowledging it: the broker will deliver it again.
    mutating func abandon(_ id: UInt64) { jobs[id] = nil }

    /// The deliveries to acknowledge now, by channel.
    mutating func takeFinished() -> [Int: [DeliveryTag]] {
        defer { finished = [:] }
        return finished
    }

    /// When those that were finished since the last call had arrived.
    mutating func takeArrivals() -> [Int64] {
        defer { arrivals.removeAll(keepingCapacity: true) }
        return arrivals
    }
}
