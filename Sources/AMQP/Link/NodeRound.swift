/// Which node each attempt to connect takes, and what a round of failed attempts amounts to.
///
/// Attempts go round all nodes, so that many clients with the same list, each beginning somewhere, spread over them, and one
/// that lost its node begins with the next. Within a round nothing waits: only when no node was of use is it time for a
/// backoff, and for saying why.
struct NodeRound {
    private let nodes: [Endpoint]
    private var next: Int
    private var failures: [AMQPError] = []

    /// - Parameter start: any number; what it points at is the first node.
    init(_ endpoints: Endpoints, startingAt start: Int) {
        nodes = endpoints.all
        next = Int(start.magnitude % UInt(endpoints.all.count))
    }

    /// The node of the next attempt.
    mutating func take() -> Endpoint {
        let node = nodes[next]
        next = (next + 1) % nodes.count
        return node
    }

    /// The last attempt failed. Nil while other nodes are to be tried at once; else the round is over, for this reason.
    mutating func failed(_ error: AMQPError, at node: Endpoint) -> AMQPError? {
        failures.append(nodes.count > 1 ? error.at(node) : error)
        guard failures.count >= nodes.count else { return nil }
        defer { failures = [] }
        return Self.verdict(failures)
    }

    /// The last attempt succeeded: if its connection is lost, a whole round is to come.
    mutating func succeeded() { failures = [] }

    /// Wrong for good is what is wrong for good on all nodes that answer: a password that one node refuses may be right on
    /// one that will come back, but nothing says so while those that answer agree.
    private static func verdict(_ failures: [AMQPError]) -> AMQPError? {
        let answers = failures.filter(\.isAnswer)
        return answers.last { !$0.isConfiguration } ?? answers.last ?? failures.last
    }
}

extension AMQPError {
    /// Whether a broker, or a peer in its place, said something.
    fileprivate var isAnswer: Bool {
        switch kind {
        case .unreachable, .dns, .handshakeTimeout: false
        default: true
        }
    }

    fileprivate func at(_ node: Endpoint) -> AMQPError {
        AMQPError(
            scope: scope, kind: kind, code: code, text: "\(node.address): \(text)",
            isConfiguration: isConfiguration)
    }
}
