import Contract
package import FoundationEssentials
package import RoomCore

extension JSONValue {
    /// A number of minutes, to the millisecond.
    var minutes: Duration? { number.map { .milliseconds(Int64(($0 * 60_000).rounded())) } }

    /// A number of seconds, to the millisecond.
    var seconds: Duration? { number.map { .milliseconds(Int64(($0 * 1_000).rounded())) } }

    var int: Int? { integer.flatMap(Int.init(exactly:)) }
    var date: Date? { instant.map(Date.init) }

    /// Of a size that can be a time; anything else is none of ours.
    private var number: Double? {
        let number: Double? =
            switch self {
            case .integer(let whole): Double(whole)
            case .real(let real): real
            default: nil
            }
        return number.flatMap { abs($0) < 1e12 ? $0 : nil }
    }
}

extension Date {
    package init(_ instant: Instant) {
        self.init(timeIntervalSince1970: Double(instant.milliseconds) / 1_000)
    }
}

extension Instant {
    package init(_ date: Date) {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        self.init(milliseconds: Int64(exactly: min(max(milliseconds, -1e15), 1e15)) ?? 0)
    }
}

extension TimeSpan {
    /// Half a millisecond is rounded up, as the worker does.
    package init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let bounded = min(max(seconds, -1_000_000_000_000), 1_000_000_000_000)
        self.init(milliseconds: bounded * 1_000 + (attoseconds + 500_000_000_000_000) / 1_000_000_000_000_000)
    }
}
