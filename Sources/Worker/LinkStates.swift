import AMQP

/// What is known of the two connections.
struct LinkStates {
    /// The generation of each publishing channel that is open.
    var publisher: [Int: UInt64] = [:]
    /// The consuming channels that are open.
    var consuming: Set<Int> = []
    /// The broker takes no publications for now.
    var isBlocked = false
    /// The last failure of each connection, so that each change is said once.
    var lastError: [String: AMQPError] = [:]
}
