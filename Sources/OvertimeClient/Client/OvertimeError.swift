/// Why a call has no result.
///
/// After `noReply`, `cancelled`, `closed`, `unreadable` and `resources` it is unknown whether the command was carried out: ask
/// again with the same key, and it is carried out once in all. After all others it was not.
public enum OvertimeError: Error, Hashable, Sendable {
    /// The worker decided against it, and changed nothing.
    case refused(Overtime.Refusal)
    /// The call itself is wrong, and nothing was sent: says what and how it would be right.
    case malformed(String)
    /// The broker could not be reached in time; says why, where it is known.
    case unreachable(String)
    /// The broker refuses for good: a wrong password, virtual host or right.
    case brokerRefuses(String)
    /// Nobody has declared what this needs: no worker has been started on this broker, or the prefix is another.
    case noWorker(String)
    /// The broker's queue is full or has no quorum, or this process has too many calls under way: nothing was done.
    case overloaded(String)
    /// It was sent, and nobody answered in time, or the connection was lost before the answer and did not come back.
    case noReply
    /// The task was cancelled.
    case cancelled
    /// The client was closed.
    case closed
    /// The answer is none that this version understands.
    case unreadable
    /// This process lacks threads, memory or descriptors.
    case resources(String)
}

extension OvertimeError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .refused(let refusal): "refused: \(refusal)"
        case .malformed(let detail): detail
        case .unreachable(let detail):
            "the broker cannot be reached" + (detail.isEmpty ? "" : ": \(detail)")
        case .brokerRefuses(let detail): "the broker refuses: \(detail)"
        case .noWorker(let detail):
            "\(detail): start a worker once, or check the prefix and the number of shards"
        case .overloaded(let detail): detail
        case .noReply: "no reply in time: is a worker running?"
        case .cancelled: "cancelled"
        case .closed: "the client was closed"
        case .unreadable: "the reply cannot be read: is the worker of this version?"
        case .resources(let detail): "this process cannot go on: \(detail)"
        }
    }
}
