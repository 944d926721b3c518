/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// Its own type, so that wall time and waiting time cannot be mixed. Arithmetic saturates at
/// `earliest` and `latest` instead of trapping; every instant in between prints with a four-digit year.
package struct Instant: Hashable, Comparable, Sendable, Codable {
    package let milliseconds: Int64

    /// Clamps to `earliest...latest`: a clock that reads nonsense must not stop the process.
    package init(milliseconds: Int64) {
        self.milliseconds = min(max(milliseconds, Self.bounds.lowerBound), Self.bounds.upperBound)
    }

    package static let earliest = Instant(milliseconds: Self.bounds.lowerBound)
    package static let latest = Instant(milliseconds: Self.bounds.upperBound)

    /// 0001-01-01T00:00:00.000Z to 9999-12-31T23:59:59.999Z.
    private static let bounds: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    package static func < (left: Instant, right: Instant) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (instant: Instant, span: TimeSpan) -> Instant {
        let (sum, overflow) = instant.milliseconds.addingReportingOverflow(span.milliseconds)
        return overflow ? (span.milliseconds > 0 ? .latest : .earliest) : Instant(milliseconds: sum)
    }

    package static func - (instant: Instant, span: TimeSpan) -> Instant {
        let (difference, overflow) = instant.milliseconds.subtractingReportingOverflow(span.milliseconds)
        return overflow ? (span.milliseconds > 0 ? .earliest : .latest) : Instant(milliseconds: difference)
    }

    /// Never overflows: both instants lie within the bounds.
    package static func - (later: Instant, earlier: Instant) -> TimeSpan {
        TimeSpan(milliseconds: later.milliseconds - earlier.milliseconds)
    }

    package init(from decoder: any Decoder) throws {
        self.init(milliseconds: try decoder.singleValueContainer().decode(Int64.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}

/// A length of time in whole milliseconds.
package struct TimeSpan: Hashable, Comparable, Sendable, Codable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static let zero = TimeSpan(milliseconds: 0)
    /// The longest duration that a command may carry: 366 days.
    package static let longest = TimeSpan(milliseconds: 366 * 24 * 60 * 60_000)

    /// For constants in code; a command's numbers go through the contract's decoder.
    package static func minutes(_ count: Int64) -> TimeSpan { TimeSpan(milliseconds: count * 60_000) }
    package static func seconds(_ count: Int64) -> TimeSpan { TimeSpan(milliseconds: count * 1_000) }

    package static func < (left: TimeSpan, right: TimeSpan) -> Bool { left.milliseconds < right.milliseconds }

    /// Saturates, as `Instant` does.
    package static func - (left: TimeSpan, right: TimeSpan) -> TimeSpan {
        let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
        return TimeSpan(milliseconds: overflow ? (left.milliseconds < 0 ? .min : .max) : difference)
    }

    package init(from decoder: any Decoder) throws {
        self.init(milliseconds: try decoder.singleValueContainer().decode(Int64.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}
