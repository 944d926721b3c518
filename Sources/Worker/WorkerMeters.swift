import Contract
import Metrics
import RoomCore

/// What the worker counts for its metrics: plain numbers on its own thread.
struct WorkerMeters {
    var commands = CommandCounts()
    var commandAge = Histogram(.commandAge)
    var commandLatency = Histogram(.commandLatency)
    var batchItems = Histogram(.batchItems)
    var storeCommit = Histogram(.storeCommit)
    var announcementLateness = Histogram(.announcementLateness)
    /// By channel, in the order of `PublicationEnd`.
    var publications = [[Int64]](
        repeating: [Int64](repeating: 0, count: PublicationEnd.allCases.count), count: 3)
    var deadLetters: [String: Int64] = [:]
    var consumer = ConnectionMeter()
    var publisher = ConnectionMeter()

    /// Every reason of a dead letter that this program gives.
    static let reasons = InvalidCommand.Reason.allCases.map(\.rawValue) + ["crashed_worker", "store_refused"]

    /// The most that a timestamp may lie back: one that is older is a publisher's wrong clock, and would make the sum of
    /// all ages useless.
    private static let oldest: Int64 = 30 * 86_400_000

    /// Notes how old a command is by its publisher's timestamp, which is anything that fits into 64 bits.
    mutating func noteAge(timestamp: UInt64?, now: Instant) {
        guard let timestamp, let seconds = Int64(exactly: timestamp), seconds < Int64.max / 2_000 else {
            return
        }
        let (age, overflow) = now.milliseconds.subtractingReportingOverflow(seconds * 1_000)
        guard !overflow, age <= Self.oldest else { return }
        // Whole seconds and another clock: a little in the future is now.
        commandAge.observe(milliseconds: max(age, 0))
    }

    mutating func note(_ count: Int, _ end: PublicationEnd, on channel: Int) {
        guard publications.indices.contains(channel) else { return }
        publications[channel][end.rawValue] += Int64(count)
    }
}

extension WorkerMeters {
    /// Takes what a batch noted, once it is durable.
    mutating func add(_ notes: BatchDecision.Notes) {
        commands.add(notes.commands)
        for milliseconds in notes.lateness { announcementLateness.observe(milliseconds: milliseconds) }
        batchItems.observe(Double(notes.items))
    }
}

/// What became of a publication.
enum PublicationEnd: Int, CaseIterable {
    case confirmed, refused, returned, unknown
}

/// Commands by kind and outcome.
struct CommandCounts {
    enum Outcome: Int, CaseIterable {
        case applied, refused, repeated
    }

    private var counts = [Int64](repeating: 0, count: CommandKind.allCases.count * Outcome.allCases.count)

    subscript(kind: CommandKind, outcome: Outcome) -> Int64 {
        counts[Self.index(kind, outcome)]
    }

    mutating func note(_ kind: CommandKind, _ outcome: Outcome) { counts[Self.index(kind, outcome)] += 1 }

    mutating func add(_ other: CommandCounts) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }

    private static func index(_ kind: CommandKind, _ outcome: Outcome) -> Int {
        let row =
            switch kind {
            case .open: 0
            case .join: 1
            case .leave: 2
            case .extend: 3
            case .destroy: 4
            case .status: 5
            }
        return row * Outcome.allCases.count + outcome.rawValue
    }
}
