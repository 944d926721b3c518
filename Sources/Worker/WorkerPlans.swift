package import AMQP
import Contract

/// What the worker's channels declare and consume each time they open.
package struct WorkerPlans: Sendable {
    package let consumer: [ChannelPlan]
    package let publisher: [ChannelPlan]
    let startGate: StartGate

    /// What bodies too large to be commands may take at once, until their dead letters are confirmed.
    static let largeBodyBudget = 64 << 20

    package init(settings: WorkerSettings, mode: DeclareMode) {
        let topology = settings.topology
        consumer = [
            ChannelPlan(
                declare: topology.declarations(mode, parts: [.dead, .commands]), prefetch: settings.prefetch,
                consumers: topology.commandQueues.map { ConsumerPlan(queue: $0, tag: $0) },
                largeBodyBudget: Self.largeBodyBudget, startsOpen: false),
            ChannelPlan(
                declare: topology.declarations(mode, parts: [.ticks]), prefetch: 64,
                consumers: [ConsumerPlan(queue: topology.ticks, tag: "ticks")],
                maximumBodyBytes: Tick.maximumBytes, startsOpen: false),
            ChannelPlan(
                declare: topology.declarations(mode, parts: [.queries]), prefetch: 64,
                consumers: [ConsumerPlan(queue: topology.queries, tag: "queries")],
                maximumBodyBytes: StrictJSON.maximumBytes),
        ]
        let log = topology.logDeclarations(mode)
        publisher = [
            ChannelPlan(declare: topology.declarations(mode, parts: [.events]), confirms: true),
            ChannelPlan(declare: topology.declarations(mode, parts: [.replies]), confirms: true),
            ChannelPlan(declare: topology.declarations(mode, parts: [.dead]), confirms: true),
            ChannelPlan(declare: log),
            ChannelPlan(declare: topology.declarations(mode)),
        ]
        let logPart = StartGate.Part(link: "publisher", channel: PublisherChannel.log)
        startGate = StartGate(
            expecting: Set(
                (0..<3).flatMap {
                    [
                        StartGate.Part(link: "consumer", channel: $0),
                        StartGate.Part(link: "publisher", channel: $0),
                    ]
                }),
            optional: [logPart, StartGate.Part(link: "publisher", channel: PublisherChannel.topology)])
    }
}
