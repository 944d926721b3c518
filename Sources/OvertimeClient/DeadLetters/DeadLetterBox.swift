package import AMQP
package import Contract
import Service

/// The queue of dead letters, read in one pass without changing what is not asked for.
///
/// A pass consumes with acknowledgements by hand, remembers, and closes the channel: whatever was not acknowledged
/// goes back, in its old order, because a quorum queue hands out what was returned before everything else. A pass
/// looks at as many letters as there were at its start, so that a command that dies again is not met twice. Only letters
/// that have been returned before are acted on, so where it meets others the first look only returns them, and the next
/// does what was asked; `LetterBag` says why.
///
/// ```
///  count ─► each letter: keep │ drop: acknowledge │ retry: publish ─► confirmed: acknowledge ─► all settled ─► close ─► look again
///                                                            └─ returned, refused: keep
/// ```
///
/// | What happens | What becomes of the letters |
/// | --- | --- |
/// | this process dies, the connection is lost | what is not acknowledged is back; what was published may be sent twice, with the same key |
/// | the retried command has no queue, or is refused | it stays |
/// | the retried command dies again during the pass | it is a letter again, which the pass does not touch |
/// | it cannot tell a letter from one that was acknowledged | it stays, and may be retried twice, with the same key |
/// | the time is up | what is not settled stays |
///
/// Reading and publishing have a connection each: the broker stops reading from one that publishes while it is short of
/// memory, and acknowledgements would wait with it.
package final class DeadLetterBox {
    /// What to do with a letter.
    package enum Verdict: Sendable {
        case keep
        case drop
        case retry(RestoredCommand)
    }

    /// What became of a letter that was not kept.
    package enum Outcome: String, Hashable, Sendable {
        case dropped
        case retried
        /// No queue takes it.
        case returned
        /// The queue is full or has no quorum, or the message is too large for a frame.
        case refused
        /// The broker has not confirmed it: it may have been taken or not.
        case unknown
        /// Its body is larger than any command and was not held, so it cannot be sent again.
        case tooLarge = "too_large"
    }

    package struct Pass: Sendable {
        /// How many letters there were, and how many were looked at.
        package var expected = 0
        package var seen = 0
        /// How many others consumed the queue when it began: what they hold is not among the expected.
        package var otherReaders = 0
        package var outcomes: [LetterID: Outcome] = [:]
        /// Why it ended before its end; everything above still holds.
        package var failure: OvertimeError?
        /// No letter that was acknowledged is in the queue any more.
        package var isSettled = false

        package var isWhole: Bool { seen >= expected && failure == nil && otherReaders == 0 }
    }

    /// The most letters that one pass holds: what a consumer's limit can say.
    package static let maximumHeld = Int(UInt16.max)
    /// Larger bodies are passed over; a command has at most 64 KiB.
    package static let maximumBodyBytes = 1 << 20

    private let topology: Topology
    private let connection: LinkConfiguration

    package init(connection: LinkConfiguration, topology: Topology) {
        self.connection = connection
        self.topology = topology
    }

    /// Whom a retried command is sent as.
    package var user: ShortString? { connection.publisher }

    /// Looks at every letter once, until `deadline` of the monotonic clock (milliseconds). `judge` is asked in the order
    /// of the queue.
    ///
    /// - Parameters:
    ///   - publishes: whether any letter may be retried.
    ///   - restarted: a lost connection made the pass begin anew; nothing had been changed.
    package func pass(
        publishes: Bool, until deadline: Int64, restarted: () -> Void = {},
        judge: (LetterID, Letter) -> Verdict
    ) -> Pass {
        let run = DeadLetterPass(connection: connection, topology: topology, publishes: publishes)
        defer { run.close() }
        return run.run(until: deadline, restarted: restarted, judge: judge)
    }
}
