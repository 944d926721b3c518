internal import Glibc

/// A link's thread: connects, runs the session, and waits before the next attempt. Confined to that thread.
final class LinkLoop {
    let configuration: LinkConfiguration
    let channels: () -> [ChannelPlan]
    let inbox: LinkInbox
    let control: LinkControl
    private let observer: ([LinkEvent]) -> Void
    private let resolver = Resolver()
    private var round: NodeRound

    /// What the observer has not heard yet.
    var events: [LinkEvent] = []
    var slots: [ChannelSlot] = []
    /// What callers asked for last, by channel; it outlives the connection.
    var wishes: [Int: Bool] = [:]
    var isBlocked = false
    /// Publications wait for the socket, not for the broker's leave.
    var needsRoom = false
    var wantsReconnect = false
    private var lastGeneration: UInt64 = 0

    init(
        configuration: LinkConfiguration, channels: @escaping () -> [ChannelPlan],
        observer: @escaping ([LinkEvent]) -> Void, inbox: LinkInbox, control: LinkControl
    ) {
        self.configuration = configuration
        self.channels = channels
        self.observer = observer
        self.inbox = inbox
        self.control = control
        round = NodeRound(configuration.endpoints, startingAt: Int.random(in: 0..<Int.max))
    }

    func run() {
        var failures = 0
        while !control.isStopping {
            events.append(.connecting(attempt: failures + 1))
            flush()
            var connectedAt: Instant?
            do throws(AMQPError) {
                let connection = try connect()
                connectedAt = .now
                try runSession(connection)
                break
            } catch {
                let reason = control.wasCut ? .cut : error
                control.release()
                endChannels(reason)
                guard !control.isStopping else { break }
                if let connectedAt,
                    Instant.now - connectedAt >= configuration.backoff.maximum.wholeMilliseconds
                {
                    failures = 0
                }
                failures += 1
                let delay = backoff(failures: failures, isConfiguration: reason.isConfiguration)
                events.append(.disconnected(reason, retryInMilliseconds: delay))
                flush()
                wait(milliseconds: delay)
            }
        }
        control.release()
        endChannels(nil)
        events.append(.stopped)
        flush()
    }

    func flush() {
        guard !events.isEmpty else { return }
        let batch = events
        events.removeAll(keepingCapacity: true)
        observer(batch)
    }

    func nextGeneration() -> UInt64 {
        lastGeneration += 1
        return lastGeneration
    }

    func backoff(failures: Int, isConfiguration: Bool) -> Int64 {
        configuration.backoff.milliseconds(
            failures: failures, isConfiguration: isConfiguration, unit: Double.random(in: 0..<1))
    }

    /// Tries each node once, beginning with the next; throws what the round amounts to.
    private func connect() throws(AMQPError) -> Connection {
        while true {
            let node = round.take()
            do throws(AMQPError) {
                let connection = try connect(to: node)
                round.succeeded()
                return connection
            } catch {
                control.release()
                guard !control.isStopping else { throw error }
                if let reason = round.failed(error, at: node) { throw reason }
            }
        }
    }

    private func connect(to node: Endpoint) throws(AMQPError) -> Connection {
        let deadline = Instant.now + configuration.connectTimeout.wholeMilliseconds
        var rest: Duration { .milliseconds(max(1, deadline - .now)) }
        let addresses = try resolver.resolve(
            host: node.host, port: node.port, timeout: rest, stop: control.stop)
        let connection = try Connection()
        if node.isTLS {
            // The library checks the certificate only against the name that it connects to, so it resolves the name
            // a second time; the look-up above has bounded that in all but the unluckiest case.
            try connection.openTLS(to: node, configuration, timeout: rest)
        } else {
            try connection.adopt(Dialer.connect(to: addresses, timeout: rest, stop: control.stop))
        }
        let heartbeat = Int(configuration.heartbeatSeconds)
        Dialer.tune(connection.descriptor, heartbeatSeconds: heartbeat)
        try control.hold(connection.descriptor)
        let properties = try connection.logIn(to: node, configuration, timeout: rest)
        Dialer.tune(connection.descriptor, heartbeatSeconds: min(heartbeat, connection.heartbeatSeconds))
        control.beginSession()
        let version = properties["version"]?.text ?? "unknown"
        events.append(
            .connected(
                brokerVersion: SafeText.oneLine(version.utf8), properties: properties, node: node.address))
        return connection
    }

    /// Between two attempts: only wishes are noted, everything else has lost its channel.
    private func wait(milliseconds: Int64) {
        let deadline = Instant.now + milliseconds
        while !control.isStopping {
            control.wake.clear()
            var isImpatient = false
            for command in inbox.takeAll() {
                switch command {
                case .open(let channel): wishes[channel] = true
                case .close(let channel): wishes[channel] = false
                case .reconnect: isImpatient = true
                case .publish, .acknowledge, .reject: break
                }
            }
            let rest = deadline - .now
            guard !isImpatient, rest > 0 else { return }
            _ = control.wake.wait(milliseconds: rest, or: control.stop)
        }
    }

    /// Tells the end of every channel that had a life.
    private func endChannels(_ error: AMQPError?) {
        for index in slots.indices {
            guard var machine = slots[index].machine else { continue }
            let actions = machine.connectionLost(error)
            let generation = machine.generation
            let unsent = slots[index].endLife()
            for action in actions {
                guard case .closed(let reason, let unknown) = action else { continue }
                events.append(
                    .channelClosed(index, generation: generation, reason, unknown: unknown + unsent))
            }
        }
        slots = []
        isBlocked = false
        needsRoom = false
    }
}

extension AMQPError {
    static let cut = AMQPError(
        scope: .connection, kind: .heartbeat, text: "the broker took no data for three heartbeats")
}
