/// Tells a process that has never been fully connected when to give up.
///
/// What is wrong for good (password, virtual host, a right, other arguments) gets a few tries at the start; after that
/// going on would only hide it. A broker that cannot be reached is waited for, and a process that has once been
/// connected retries for ever.
package struct StartGate: Sendable {
    /// A channel of a link, by the names the process gave them.
    package struct Part: Hashable, Sendable {
        package let link: String
        package let channel: Int

        package init(link: String, channel: Int) {
            self.link = link
            self.channel = channel
        }
    }

    private var expected: Set<Part>
    private let optional: Set<Part>
    private let tries: Int
    private var failures: [String: Int] = [:]
    private var lastError: AMQPError?

    /// - Parameter optional: parts that stop nothing while they are down; only other arguments count there.
    package init(expecting expected: Set<Part>, optional: Set<Part> = [], tries: Int = 5) {
        self.expected = expected
        self.optional = optional
        self.tries = tries
    }

    /// True once everything was open, each part at its time.
    package var hasStarted: Bool { expected.isEmpty }

    /// Takes note of what a link told; the error to give up with, if it is time to.
    package mutating func note(_ event: LinkEvent, of link: String) -> AMQPError? {
        guard !hasStarted else { return nil }
        switch event {
        case .channelOpened(let channel, _):
            let part = Part(link: link, channel: channel)
            expected.remove(part)
            failures["\(link)/\(channel)"] = nil
            failures[link] = nil
            return nil
        case .channelClosed(let channel, _, .some(let error), _):
            guard error.scope == .channel else { return nil }
            if optional.contains(Part(link: link, channel: channel)), error.kind != .preconditionFailed {
                return nil
            }
            return count(error, "\(link)/\(channel)")
        case .disconnected(let error, _):
            lastError = error
            return count(error, link)
        case .stopped:
            // Nobody asked for it: there was no thread or no descriptor to begin with, and nobody begins again.
            return lastError
        default:
            return nil
        }
    }

    private mutating func count(_ error: AMQPError, _ key: String) -> AMQPError? {
        guard error.isConfiguration else { return nil }
        failures[key, default: 0] += 1
        return failures[key, default: 0] >= tries ? error : nil
    }
}
