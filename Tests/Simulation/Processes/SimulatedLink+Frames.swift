import AMQP

/// What the broker sends, and what its process hears of it.
extension SimulatedLink {
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
