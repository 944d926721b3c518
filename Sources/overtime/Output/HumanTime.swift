import Contract
import Glibc
import RoomCore

/// Times and durations as people read them.
enum HumanTime {
    /// The local time of day, `14:05:09`, or with tenths.
    static func clock(_ instant: Instant, withMilliseconds: Bool = false) -> String {
        var seconds = time_t(instant.milliseconds / 1_000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return TimeText.text(instant) }
        let text = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        guard withMilliseconds else { return text }
        let rest = instant.milliseconds % 1_000
        return text + "." + String(repeating: "0", count: rest < 10 ? 2 : rest < 100 ? 1 : 0) + "\(rest)"
    }

    /// A length of time in its two largest units: `1 h 5 min`, `4 min 30 s`, `2.5 s`.
    static func span(_ span: TimeSpan) -> String {
        let milliseconds = min(max(span.milliseconds, 0), longest)
        let seconds = (milliseconds + 500) / 1_000
        let tenths = (milliseconds + 50) / 100
        if tenths < 100 { return "\(tenths / 10).\(tenths % 10) s" }
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3_600 {
            return seconds % 60 == 0 ? "\(seconds / 60) min" : "\(seconds / 60) min \(seconds % 60) s"
        }
        let minutes = seconds / 60 % 60
        return minutes == 0 ? "\(seconds / 3_600) h" : "\(seconds / 3_600) h \(minutes) min"
    }

    /// A number of minutes from an event or a reply.
    static func minutes(_ value: JSONValue?) -> String {
        switch value {
        case .integer(let count): minutes(Double(count))
        case .real(let count): minutes(count)
        default: "?"
        }
    }

    private static func minutes(_ count: Double) -> String {
        guard !count.isNaN else { return "?" }
        return span(TimeSpan(milliseconds: Int64(min(max(count * 60_000, 0), Double(longest)).rounded())))
    }

    /// A thousand years, in milliseconds: more than any room lasts, and far from where arithmetic ends.
    private static let longest: Int64 = 1_000 * 366 * 86_400_000

    private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
