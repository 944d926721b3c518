import RoomCore
import Store

/// What happened, as the checker needs it, and as a person reads it behind a failing seed.
final class History {
    /// One transaction of the worker, durable whatever the worker was told.
    struct Commit {
        let at: Int64
        /// The worker's clock when it was made.
        let wall: Int64
        let batch: BatchCommit
        let positions: [Int64]
    }

    private let timeline: Timeline
    private let kept: Int
    private(set) var trace: [String] = []

    var commits: [Commit] = []
    /// What the queue of dead letters has ever taken.
    var letters: [Message] = []
    /// Correlations of replies that the broker refused: the worker may drop those.
    var refusedReplies: Set<String> = []
    /// Every event that reached any queue, with what was lost again when the broker died.
    var published: [Message] = []
    var workerCrashes = 0
    /// How often each fault was injected.
    private(set) var faults: [Fault: Int] = [:]
    /// A number that two runs have in common only where they were the same.
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    init(timeline: Timeline, keepingSteps kept: Int) {
        self.timeline = timeline
        self.kept = kept
    }

    func note(_ text: @autoclosure () -> String) {
        guard kept > 0 else { return }
        let now = timeline.now
        let milliseconds = String(1_000 + now % 1_000).dropFirst()
        trace.append("\(now / 1_000).\(milliseconds) \(text())")
        if trace.count > 2 * kept { trace.removeFirst(kept) }
    }

    var lastSteps: ArraySlice<String> { trace.suffix(kept) }

    func inject(_ fault: Fault, _ text: @autoclosure () -> String = "") {
        faults[fault, default: 0] += 1
        mix(UInt64(fault.index))
        note("! \(fault.rawValue) \(text())")
    }

    func mix(_ number: UInt64) { digest = (digest ^ number ^ UInt64(timeline.now)) &* 0x100_0000_01b3 }

    func mix(_ bytes: [UInt8]) { for byte in bytes { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3 } }
}
