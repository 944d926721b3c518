// The lives of a link's channels: when they begin, what their machines ask for, and what follows their end.
extension LinkLoop {
    func setUpChannels(_ connection: Connection) throws(AMQPError) {
        let plans = channels()
        guard plans.count <= connection.channelMaximum else {
            throw AMQPError(
                scope: .connection, kind: .notAllowed,
                text: "\(plans.count) channels are wanted, \(connection.channelMaximum) allowed",
                isConfiguration: true)
        }
        slots = plans.enumerated().map { ChannelSlot(index: $0.offset, plan: $0.element) }
        for index in slots.indices where wishes[index] ?? slots[index].plan.startsOpen {
            try openChannel(index, connection)
        }
    }

    func openDueChannels(_ connection: Connection) throws(AMQPError) {
        // While blocked the broker reads nothing and would not answer.
        guard !isBlocked else { return }
        for index in slots.indices {
            guard let due = slots[index].opensAt, due <= .now else { continue }
            let plans = channels()
            guard plans.indices.contains(index) else {
                slots[index].opensAt = nil
                continue
            }
            slots[index].plan = plans[index]
            try openChannel(index, connection)
        }
    }

    private func openChannel(_ index: Int, _ connection: Connection) throws(AMQPError) {
        var machine = ChannelMachine(generation: nextGeneration(), plan: slots[index].plan)
        let actions = machine.start()
        slots[index].opensAt = nil
        slots[index].machine = machine
        try perform(actions, index, connection)
    }

    /// Closes the channels that were asked to close and have sent everything.
    func closeSentChannels(_ connection: Connection) throws(AMQPError) {
        for index in slots.indices where slots[index].closesWhenSent && !slots[index].hasOutgoing {
            slots[index].closesWhenSent = false
            try perform(slots[index].machine?.requestClose() ?? [], index, connection)
        }
    }

    /// An answer that does not come is a connection that is lost.
    func checkAnswers() throws(AMQPError) {
        guard !isBlocked else { return }
        for slot in slots {
            guard let due = slot.answerDueAt, due <= .now else { continue }
            throw AMQPError(
                scope: .connection, kind: .rpcTimeout,
                text: "the broker did not answer on channel \(slot.number) in time")
        }
    }

    func perform(_ actions: [ChannelMachine.Action], _ index: Int, _ connection: Connection) throws(AMQPError)
    {
        for action in actions {
            switch action {
            case .send(let method):
                let isAwaiting = slots[index].machine?.awaitsReply == true
                slots[index].answerDueAt =
                    isAwaiting ? .now + configuration.rpcTimeout.wholeMilliseconds : nil
                try connection.send(method, channel: slots[index].number)
            case .opened:
                slots[index].openedAt = .now
                slots[index].answerDueAt = nil
                events.append(.channelOpened(index, generation: generation(of: index)))
            case .counted(let messages, let consumers):
                events.append(.queueCounted(index, messages: messages, consumers: consumers))
            case .deliver(let delivery):
                if !control.isStopping { events.append(.delivery(index, delivery)) }
            case .confirmed(let ids):
                events.append(.confirmed(index, ids))
            case .refused(let ids):
                events.append(.refused(index, ids))
            case .returned(let id, let code, let text):
                events.append(.returned(index, id, code: code, text: text))
            case .closed(let error, let unknown):
                ended(index, error: error, unknown: unknown)
            }
        }
    }

    private func generation(of index: Int) -> UInt64 { slots[index].machine?.generation ?? 0 }

    private func ended(_ index: Int, error: AMQPError?, unknown: [UInt64]) {
        let generation = generation(of: index)
        let wasOpen = slots[index].openedAt != nil
        let wasOpenFor = slots[index].openedAt.map { Instant.now - $0 } ?? 0
        let unsent = slots[index].endLife()
        events.append(.channelClosed(index, generation: generation, error, unknown: unknown + unsent))
        guard wishes[index] ?? slots[index].plan.startsOpen else { return }
        guard let error else {
            // Closed and opened again on request.
            slots[index].failures = 0
            slots[index].opensAt = .now
            return
        }
        if wasOpenFor >= configuration.backoff.maximum.wholeMilliseconds { slots[index].failures = 0 }
        slots[index].failures += 1
        // A 406 on an open channel is about a message, say one that is too large: without it the channel works at once.
        let isConfiguration = error.isConfiguration && !(wasOpen && error.kind == .preconditionFailed)
        slots[index].opensAt =
            .now + backoff(failures: slots[index].failures, isConfiguration: isConfiguration)
    }
}
