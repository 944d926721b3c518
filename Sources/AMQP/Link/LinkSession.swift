internal import Glibc

// One connected session: frames in, commands out, timers, and sleep when there is nothing of either.
extension LinkLoop {
    private static let framesPerTurn = 4096
    private static let framesPerRelease = 64
    private static let publicationsPerBurst = 16
    private static let publicationsPerTurn = 512
    private static let bytesPerRoomCheck = 1 << 14

    /// Returns when the link is stopped, throws when the connection is over.
    func runSession(_ connection: Connection) throws(AMQPError) {
        do throws(AMQPError) {
            try setUpChannels(connection)
            while true {
                control.beat()
                let isDrained = try drain(connection)
                // Asked before: what was put in before the stop must still be taken out.
                let isStopping = control.isStopping
                try takeCommands(connection)
                if isStopping { break }
                if wantsReconnect {
                    wantsReconnect = false
                    throw AMQPError(
                        scope: .connection, kind: .reconnectRequested, text: "a reconnect was asked for")
                }
                try openDueChannels(connection)
                let isPumped = try pump(connection)
                try closeSentChannels(connection)
                try checkAnswers()
                flush()
                if isDrained, isPumped { sleep(connection) }
            }
        } catch {
            throw lastWords(connection) ?? error
        }
        sayGoodbye(connection)
    }

    /// Takes all frames that have arrived; `false` if there may be more.
    private func drain(_ connection: Connection) throws(AMQPError) -> Bool {
        defer { connection.releaseBuffers() }
        for count in 1...Self.framesPerTurn {
            guard let (channel, frame) = try connection.nextFrame() else { return true }
            try dispatch(frame, channel: channel, connection)
            // Between two frames is when the library lets go of them, even while a large body is under way.
            if count % Self.framesPerRelease == 0 { connection.releaseBuffers() }
        }
        return false
    }

    private func dispatch(_ frame: Frame, channel: Int, _ connection: Connection) throws(AMQPError) {
        guard channel == 0 else {
            let index = channel - 1
            // Changed in place: a copy of the machine would cost more than most frames.
            guard slots.indices.contains(index), let actions = try slots[index].machine?.receive(frame) else {
                throw .protocolViolation("a frame came on channel \(channel), which is not open")
            }
            try perform(actions, index, connection)
            return
        }
        switch frame {
        case .connectionClose(let error):
            try? connection.sendCloseOK()
            throw error
        case .blocked(let reason):
            isBlocked = true
            events.append(.blocked(reason: reason))
        case .unblocked:
            isBlocked = false
            // A blocked broker does not read, so it could not answer.
            for index in slots.indices where slots[index].answerDueAt != nil {
                slots[index].answerDueAt = .now + configuration.rpcTimeout.wholeMilliseconds
            }
            events.append(.unblocked)
        default:
            throw .protocolViolation("an unexpected method came on the connection")
        }
    }

    private func takeCommands(_ connection: Connection) throws(AMQPError) {
        for command in inbox.takeAll() {
            switch command {
            case .publish(let publications, let channel, let generation):
                guard slots.indices.contains(channel), let machine = slots[channel].machine,
                    machine.generation == generation, machine.isOpen, !slots[channel].closesWhenSent
                else { continue }
                slots[channel].enqueue(publications)
            case .acknowledge(let tags, let channel):
                guard slots.indices.contains(channel) else { continue }
                try perform(slots[channel].machine?.acknowledge(tags) ?? [], channel, connection)
            case .reject(let tag, let requeue, let channel):
                guard slots.indices.contains(channel) else { continue }
                try perform(slots[channel].machine?.reject(tag, requeue: requeue) ?? [], channel, connection)
            case .open(let channel):
                wishes[channel] = true
                guard slots.indices.contains(channel), slots[channel].machine == nil,
                    slots[channel].opensAt == nil
                else { continue }
                slots[channel].opensAt = .now
            case .close(let channel):
                wishes[channel] = false
                guard slots.indices.contains(channel) else { continue }
                slots[channel].opensAt = nil
                if slots[channel].machine != nil { slots[channel].closesWhenSent = true }
            case .reconnect:
                wantsReconnect = true
            }
        }
    }

    /// Sends what may be sent, in bursts; between two the frames are drained, because only there heartbeats are
    /// noticed, and a publish after a missed one would hang. `false` if there is more to send at once.
    ///
    /// The library's sends wait for room without a limit, deaf to the very `connection.blocked` that explains why
    /// there is none. So nothing is sent unless the socket has room (at least a third of its buffer then), and
    /// `needsRoom` makes the loop wait for it with open ears. Only a body larger than that can still hang.
    ///
    /// What is sent in one go leaves in large pieces: each frame by itself would be a packet, and a wake-up of the
    /// broker.
    func pump(_ connection: Connection) throws(AMQPError) -> Bool {
        needsRoom = false
        let isBurst = slots.reduce(0) { $0 + $1.outgoingCount } > 1
        if isBurst { control.cork(true) }
        defer { if isBurst { control.cork(false) } }
        var budget = Self.publicationsPerTurn
        var hasMore = true
        while hasMore, budget > 0 {
            hasMore = false
            for index in slots.indices where slots[index].hasOutgoing {
                control.beat()
                _ = try drain(connection)
                guard !isBlocked else { return true }
                var unchecked = Self.bytesPerRoomCheck
                for _ in 0..<Self.publicationsPerBurst {
                    guard slots[index].hasOutgoing, slots[index].machine?.mayPublish == true else { break }
                    if unchecked >= Self.bytesPerRoomCheck {
                        unchecked = 0
                        guard control.hasRoom else {
                            needsRoom = true
                            return true
                        }
                    }
                    guard let publication = slots[index].dequeue() else { break }
                    budget -= 1
                    guard publication.properties.fit(frameMaximum: connection.frameMaximum) else {
                        events.append(.refused(index, [publication.id]))
                        continue
                    }
                    slots[index].machine?.published(publication)
                    try connection.publish(publication, channel: slots[index].number)
                    unchecked += publication.body.count
                }
                if slots[index].hasOutgoing, slots[index].machine?.mayPublish == true { hasMore = true }
            }
        }
        return !hasMore
    }

    /// Waits for the broker, a command or the next timer.
    private func sleep(_ connection: Connection) {
        guard let descriptor = control.descriptor, !connection.hasBufferedFrames else { return }
        var milliseconds = Int64(connection.heartbeatSeconds) * 500
        let now = Instant.now
        for slot in slots {
            if let due = slot.opensAt, !isBlocked { milliseconds = min(milliseconds, due - now) }
            if let due = slot.answerDueAt, !isBlocked { milliseconds = min(milliseconds, due - now) }
        }
        guard milliseconds > 0 else { return }
        // The wake-up is cleared before the commands are taken, so none can come in between unnoticed.
        let events = needsRoom ? POLLIN | POLLOUT : POLLIN
        _ = WakeUp.poll(descriptor, events: events, or: control.wake, milliseconds: milliseconds)
        control.wake.clear()
    }

    /// A broker that closes says why before it hangs up; a write that failed first would hide it.
    private func lastWords(_ connection: Connection) -> AMQPError? {
        for _ in 0..<Self.framesPerTurn {
            guard let next = try? connection.nextFrame() else { return nil }
            if case .connectionClose(let error) = next.frame { return error }
        }
        return nil
    }

    /// Sends what is left, closes, and waits a second at most for the answer; outcomes still count meanwhile.
    private func sayGoodbye(_ connection: Connection) {
        let deadline = Instant.now + 1000
        var isClosing = false
        while Instant.now < deadline, let descriptor = control.descriptor {
            control.beat()
            do throws(AMQPError) {
                if !isClosing, try pump(connection), !needsRoom {
                    try connection.sendClose()
                    isClosing = true
                }
                while let (channel, frame) = try connection.nextFrame() {
                    if channel == 0, case .connectionCloseOK = frame { return }
                    try dispatch(frame, channel: channel, connection)
                }
            } catch {
                return
            }
            flush()
            if isClosing || needsRoom {
                let events = needsRoom ? POLLIN | POLLOUT : POLLIN
                _ = WakeUp.poll(descriptor, events: events, or: nil, milliseconds: max(0, deadline - .now))
            }
        }
    }
}
