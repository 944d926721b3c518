import Contract

/// The channels of the shards: opened, handed over and closed as `Shards` says.
extension Worker {
    /// How long after the last acknowledgement a channel is closed: what a broker (3.10) has not worked off by then it
    /// forgets, and a command without an id would be applied again.
    static let settleTime: Int64 = 100

    /// Brings the channels of the shards nearer to what is wanted.
    func tendShards(at uptime: Int64) {
        switch phase {
        case .stopping, .stopped: return
        case .draining, .overdue, .serving: break
        }
        // With several shards the ring must be complete before anything is consumed.
        guard shards.count == 1 || links.hasDeclared else { return }
        let steps = shards.steps(
            at: uptime, grace: settings.stopGrace, isDone: { isHandedOver($0, at: uptime) },
            isOpen: { links.consuming.contains(ConsumerChannel.commands(of: $0)) })
        for step in steps {
            switch step {
            case .open(let shard):
                guardian.opens(settings.topology.commandQueues[shard])
                consumer.openChannel(ConsumerChannel.commands(of: shard))
            case .stopDeciding(let shard): dropUndecided(of: ConsumerChannel.commands(of: shard))
            case .close(let shard): consumer.closeChannel(ConsumerChannel.commands(of: shard))
            }
        }
    }

    private func isHandedOver(_ shard: Int, at uptime: Int64) -> Bool {
        let channel = ConsumerChannel.commands(of: shard)
        return !jobs.holds(channel) && hasSettled(channel, at: uptime)
    }

    /// Whether the broker has had time for the last acknowledgements on a channel.
    func hasSettled(_ channel: Int, at uptime: Int64) -> Bool {
        acknowledgedAt[channel].map { uptime - $0 >= Self.settleTime } ?? true
    }

    /// Closes the channels of commands and ticks at once: what is in hand is delivered again.
    func giveBack(at uptime: Int64) {
        for channel in shards.giveUp(at: uptime).map(ConsumerChannel.commands(of:)) + [ConsumerChannel.ticks]
        {
            dropUndecided(of: channel)
            consumer.closeChannel(channel)
        }
    }

    /// Every channel whose deliveries are decided in batches.
    var workChannels: [Int] { shards.all.map(ConsumerChannel.commands(of:)) + [ConsumerChannel.ticks] }

    /// Whether all shards are consumed that are this worker's.
    var isConsuming: Bool {
        (shared == nil ? !shards.wanted.isEmpty : leases.roster != nil)
            && shards.wanted.allSatisfy { links.consuming.contains(ConsumerChannel.commands(of: $0)) }
    }

    /// Those that are this worker's to consume, by the names of their queues.
    var expectedQueues: [(channel: Int, name: String)] {
        let own = shared == nil ? shards.all : shards.wanted
        return (own.map(ConsumerChannel.commands(of:)) + [ConsumerChannel.ticks, ConsumerChannel.queries])
            .map { ($0, consumerName($0)) }
    }
}
