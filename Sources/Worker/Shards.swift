/// Which shards this worker is to consume, and how each of their channels stands. Pure: what is to be done comes out.
///
///     closed ──► consumed ──► handing over ──► closing ──► closed
///       ▲    open   │     stop deciding   │  close   │ the link says so,
///       └───────────┴─── nothing in hand ─┘          │ or takes too long
///
/// A shard that leaves this worker is handed over: what is undecided goes back, what is in hand is finished and
/// acknowledged, then the channel is closed. Nothing stops that half-way: deliveries were let go of unseen, and only a
/// new life of the channel brings them again. So a shard that returns meanwhile is opened once its channel is closed.
struct Shards {
    private enum State: Equatable {
        case closed, consumed
        /// Finishes what is in hand, until a point of the monotonic clock.
        case handingOver(until: Int64)
        /// Waits for the end of the channel's life, until a point of the monotonic clock.
        case closing(until: Int64)
    }

    enum Step: Hashable {
        case open(Int), stopDeciding(Int), close(Int)
    }

    private var states: [State]
    /// Those that this worker is to consume, ascending.
    private(set) var wanted: [Int] = []
    /// False where a step may be due.
    private var isSteady = true

    /// How long the end of a channel is waited for at most: by then it has closed or its connection is lost.
    private static let closeTime: Int64 = 10_000
    /// The same for a channel that is not known to be open.
    private static let shortCloseTime: Int64 = 1_000

    init(count: Int) { states = Array(repeating: .closed, count: count) }

    var count: Int { states.count }
    var all: [Int] { Array(states.indices) }
    /// True while a shard is being handed over.
    var isHandingOver: Bool {
        !isSteady && states.contains { if case .handingOver = $0 { true } else { false } }
    }

    /// Whether deliveries of a shard may be decided; what comes otherwise goes back when its channel is closed.
    func isConsumed(_ shard: Int) -> Bool { states.indices.contains(shard) && states[shard] == .consumed }

    mutating func want(_ shards: [Int]) {
        guard shards != wanted else { return }
        wanted = shards
        isSteady = false
    }

    /// A channel's life is over, for whatever reason.
    mutating func closed(_ shard: Int) {
        guard states.indices.contains(shard) else { return }
        switch states[shard] {
        case .closed, .consumed: return
        // There is nothing left to finish, and the link is still to be told not to open it again.
        case .handingOver: states[shard] = .handingOver(until: .min)
        case .closing: states[shard] = .closed
        }
        isSteady = false
    }

    /// Wants none any more, and finishes nothing. Returns those whose channels are to be closed at once.
    mutating func giveUp(at uptime: Int64) -> [Int] {
        wanted = []
        isSteady = false
        let held = states.indices.filter { shard in
            switch states[shard] {
            case .consumed, .handingOver: true
            case .closed, .closing: false
            }
        }
        for shard in held { states[shard] = .closing(until: uptime + Self.closeTime) }
        return held
    }

    /// What is to be done now.
    ///
    /// - Parameters:
    ///   - grace: how long a shard may take to be handed over.
    ///   - isDone: whether nothing of a shard is in hand any more.
    ///   - isOpen: whether its channel is known to be open.
    mutating func steps(
        at uptime: Int64, grace: Int64, isDone: (Int) -> Bool, isOpen: (Int) -> Bool
    ) -> [Step] {
        guard !isSteady else { return [] }
        var isWanted = Array(repeating: false, count: states.count)
        for shard in wanted where isWanted.indices.contains(shard) { isWanted[shard] = true }
        var steps: [Step] = []
        for shard in states.indices {
            if case .closing(let end) = states[shard], uptime >= end { states[shard] = .closed }
            if states[shard] == .consumed, !isWanted[shard] {
                states[shard] = .handingOver(until: uptime + grace)
                steps.append(.stopDeciding(shard))
            }
            if case .handingOver(let end) = states[shard], uptime >= end || isDone(shard) {
                states[shard] = .closing(
                    until: uptime + (isOpen(shard) ? Self.closeTime : Self.shortCloseTime))
                steps.append(.close(shard))
            }
            if states[shard] == .closed, isWanted[shard] {
                states[shard] = .consumed
                steps.append(.open(shard))
            }
        }
        isSteady = states.indices.allSatisfy { states[$0] == (isWanted[$0] ? .consumed : .closed) }
        return steps
    }
}
