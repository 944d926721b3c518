import AMQP

/// What is known of the two connections.
struct LinkStates {
    /// The generation of each publishing channel that is open.
    var publisher: [Int: UInt64] = [:]
    /// The consuming channels that are open.
    var consuming: Set<Int> = []
    /// The declaring channels that are open.
    var declaring: Set<Int> = []
    /// True once the whole topology was declared, the ring of the shards with it.
    var hasDeclared = false
    /// The broker takes no publications for now.
    var isBlocked = false
    /// The last failure of each connection and channel since it was open, so that each change is said once.
    private var lastError: [String: AMQPError] = [:]
    /// What the broker last did with a dead letter that it did not take; nil while it takes them.
    var letterComplaint: LetterComplaint?

    enum LetterComplaint { case refused, returned }

    /// Whether a failure is another one than the last.
    mutating func isNews(_ error: AMQPError, of name: String) -> Bool {
        defer { lastError[name] = error }
        return lastError[name] != error
    }

    /// Whether it had failed before.
    @discardableResult
    mutating func isWell(_ name: String) -> Bool { lastError.removeValue(forKey: name) != nil }
}
