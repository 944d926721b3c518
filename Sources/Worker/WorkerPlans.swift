package import AMQP
import Contract

/// What the worker's channels declare and consume each time they open.
package struct WorkerPlans: Sendable {
    package let consumer: [ChannelPlan]
    package let publisher: [ChannelPlan]
    let startGate: StartGate

    /// What bodies too large to be commands may take at once, until their dead letters are confirmed; the channels of
    /// the shards share it.
    static let largeBodyBudget = 64 << 20
    /// Commands that the broker may hand out for one of many shards.
    private static let leastPrefetch = 256

    package init(settings: WorkerSettings, mode: DeclareMode) {
        let topology = settings.topology
        consumer =
            [
                ChannelPlan(
                    declare: topology.declarations(mode, parts: [.ticks]), prefetch: 64,
                    consumers: [ConsumerPlan(queue: topology.ticks, tag: "ticks")],
                    maximumBodyBytes: Tick.maximumBytes, startsOpen: false),
                ChannelPlan(
                    declare: topology.declarations(mode, parts: [.queries]), prefetch: 64,
                    consumers: [ConsumerPlan(queue: topology.queries, tag: "queries")],
                    maximumBodyBytes: StrictJSON.maximumBytes),
            ]
            + topology.commandQueues.map { queue in
                ChannelPlan(
                    declare: topology.shardDeclarations(mode, queue: queue),
                    prefetch: Self.prefetch(settings.prefetch, shards: topology.shards),
                    consumers: [ConsumerPlan(queue: queue, tag: queue)],
                    largeBodyBudget: Self.largeBodyBudget / topology.shards, startsOpen: false)
            }
        let log = topology.logDeclarations(mode)
        publisher = [
            ChannelPlan(declare: topology.declarations(mode, parts: [.events]), confirms: true),
            ChannelPlan(declare: topology.declarations(mode, parts: [.replies]), confirms: true),
            ChannelPlan(declare: topology.declarations(mode, parts: [.dead]), confirms: true),
            ChannelPlan(declare: log),
            ChannelPlan(declare: topology.declarations(mode)),
        ]
        startGate = Self.startGate(shards: topology.shards)
    }

    /// With one shard its channel declares everything that it needs, and must open. With several it depends on the other
    /// workers which shards this one has, if any, so the ring takes their place: its channel must have opened once.
    private static func startGate(shards: Int) -> StartGate {
        let log = StartGate.Part(link: "publisher", channel: PublisherChannel.log)
        let topology = StartGate.Part(link: "publisher", channel: PublisherChannel.topology)
        let commands = StartGate.Part(link: "consumer", channel: ConsumerChannel.commands)
        var expected = Set(
            [ConsumerChannel.ticks, ConsumerChannel.queries].map {
                StartGate.Part(link: "consumer", channel: $0)
            })
        for channel in [PublisherChannel.events, PublisherChannel.replies, PublisherChannel.letters] {
            expected.insert(StartGate.Part(link: "publisher", channel: channel))
        }
        expected.insert(shards == 1 ? commands : topology)
        return StartGate(expecting: expected, optional: shards == 1 ? [log, topology] : [log])
    }

    /// Twice a shard's part of the whole: a worker with all shards then holds at most twice as many commands, and one of
    /// two workers as many, as a worker without shards. But so many that the batches of a worker with few of many
    /// shards stay large: one shard's commands of 256 make a commit worth its sync.
    static func prefetch(_ whole: UInt16, shards: Int) -> UInt16 {
        let part = max(leastPrefetch, Int(whole) * 2 / max(shards, 1))
        return min(whole, UInt16(clamping: part))
    }
}
