package import AMQP

/// The objects of contract section 1 with their exact arguments, in an order in which nothing is ever missing
/// what it needs: the dead letters stand before the queue whose letters they take, the hash ring is complete
/// before commands flow into it.
extension Topology {
    /// A part of the topology; only the worker declares commands.
    package enum Part: Hashable, Sendable, CaseIterable {
        case dead, events, replies, queries, ticks, commands
    }

    /// Everything but the log, for the worker; or the parts that another component uses.
    package func declarations(
        _ mode: DeclareMode, parts: [Part] = Part.allCases
    ) -> [DeclarationStep] {
        parts.flatMap(declarations(of:)).map { DeclarationStep($0, mode: mode) }
    }

    /// The log by itself, for a channel of its own: a log that is down must stop nothing. Empty where it is
    /// off.
    package func logDeclarations(_ mode: DeclareMode) -> [DeclarationStep] {
        guard let logMaxAge else { return [] }
        let arguments: Table = [
            "x-queue-type": .text("stream"), "x-max-age": .text(logMaxAge),
            "x-max-length-bytes": .int64(2_000_000_000),
        ]
        return [
            queue(eventsLogQueue, arguments), bind(eventsLogQueue, to: eventsExchange),
        ].map { DeclarationStep($0, mode: mode) }
    }

    /// What a channel needs that consumes a shard. With several shards its queue and its dead letters only: the ring is
    /// declared as a whole, in order, by somebody else, and all queues with it.
    package func shardDeclarations(_ mode: DeclareMode, queue: ShortString) -> [DeclarationStep] {
        guard shards > 1 else { return declarations(mode, parts: [.dead, .commands]) }
        return declarations(mode, parts: [.dead]) + [DeclarationStep(commandQueue(queue), mode: mode)]
    }

    private func declarations(of part: Part) -> [Declaration] {
        switch part {
        case .dead:
            let arguments: Table = ["x-queue-type": .text("quorum"), "x-delivery-limit": .int32(1_000_000)]
            return [exchange(dead, "fanout"), queue(dead, arguments), bind(dead, to: dead)]
        case .events:
            return [
                exchange(eventsExchange, "fanout"), exchange(eventsTopicExchange, "topic"),
                bindExchange(eventsTopicExchange, to: eventsExchange, key: ""),
            ]
        case .replies:
            return replies == .exchange ? [exchange(repliesExchange, "direct")] : []
        case .queries:
            return [
                exchange(queries, "fanout"), passingQueue(queries, ["x-message-ttl": .int32(30_000)]),
                bind(queries, to: queries),
            ]
        case .ticks:
            let arguments: Table = ["x-message-ttl": .int32(60_000), "x-max-length": .int32(10_000)]
            return [exchange(ticks, "fanout"), passingQueue(ticks, arguments), bind(ticks, to: ticks)]
        case .commands:
            return shards == 1 ? oneQueue : ring
        }
    }

    private var oneQueue: [Declaration] {
        [exchange(commandsExchange, "topic")]
            + commandQueues.flatMap { [commandQueue($0), bind($0, to: commandsExchange, key: "#")] }
    }

    /// The ring depends on the order of the bindings: queues are bound in order of their numbers, and the
    /// commands come last.
    private var ring: [Declaration] {
        [exchange(commandsExchange, "topic"), exchange(shardsExchange, "x-consistent-hash")]
            + commandQueues.map(commandQueue)
            + commandQueues.map { bind($0, to: shardsExchange, key: "1") }
            + [bindExchange(shardsExchange, to: commandsExchange, key: "#")]
    }

    private func commandQueue(_ name: ShortString) -> Declaration {
        queue(
            name,
            [
                "x-queue-type": .text("quorum"), "x-single-active-consumer": .bool(true),
                "x-delivery-limit": .int32(200), "x-dead-letter-exchange": .string(dead.bytes),
                "x-dead-letter-strategy": .text("at-least-once"), "x-overflow": .text("reject-publish"),
            ])
    }

    /// For what nobody would miss after a minute. A durable classic queue is on one node, and cannot even be declared while
    /// that is down; so in a cluster these are replicated too.
    private func passingQueue(_ name: ShortString, _ arguments: Table) -> Declaration {
        var arguments = arguments
        if isCluster { arguments["x-queue-type"] = .text("quorum") }
        return queue(name, arguments)
    }

    private func exchange(_ name: ShortString, _ kind: ShortString) -> Declaration {
        .exchange(name: name, kind: kind, durable: true, autoDelete: false, internal: false, arguments: [:])
    }

    private func queue(_ name: ShortString, _ arguments: Table) -> Declaration {
        .queue(name: name, durable: true, exclusive: false, autoDelete: false, arguments: arguments)
    }

    private func bind(
        _ queue: ShortString, to exchange: ShortString, key: ShortString = ""
    ) -> Declaration {
        .bindQueue(queue: queue, exchange: exchange, routingKey: key, arguments: [:])
    }

    private func bindExchange(
        _ destination: ShortString, to source: ShortString, key: ShortString
    ) -> Declaration {
        .bindExchange(destination: destination, source: source, routingKey: key, arguments: [:])
    }
}
