package import RoomCore

/// Durations as commands carry them: a number of minutes, or `"1h30m"`, `"90s"`, `"250ms"`.
///
/// The sum is done in integers, on the decimal that was written: `0.000025` minutes are 1.5 ms and round up
/// to 2, which `Double` arithmetic gets right only by luck.
package enum DurationText {
    /// What is wrong with a duration, as the end of a sentence that begins with the field's name.
    package struct Problem: Error, Equatable, Sendable {
        package let detail: String

        package init(detail: String) { self.detail = detail }

        static let notPositive = Problem(detail: "must be at least 1 ms")
        static let tooLong = Problem(detail: "must be at most 366 days")
        static let notDuration = Problem(
            detail:
                "must be a number of minutes or a string such as \"90s\", \"1h30m\" or \"250ms\" (whole numbers with the units h, m, s, ms in this order)"
        )
    }

    /// Reads a JSON value of a field that takes any duration.
    package static func span(_ value: JSONValue) -> Result<TimeSpan, Problem> {
        switch value {
        case .integer(let minutes): span(minutes: minutes)
        case .real(let minutes): span(minutes: minutes)
        case .string(let text): span(text)
        default: .failure(.notDuration)
        }
    }

    package static func span(minutes: Int64) -> Result<TimeSpan, Problem> {
        let (milliseconds, overflow) = minutes.multipliedReportingOverflow(by: 60_000)
        guard minutes > 0 else { return .failure(.notPositive) }
        return overflow ? .failure(.tooLong) : bounded(milliseconds)
    }

    /// Rounds half a millisecond up. A double stands for the shortest decimal that reads back as it, which
    /// is what the sender wrote for up to 15 digits.
    package static func span(minutes: Double) -> Result<TimeSpan, Problem> {
        guard minutes > 0 else { return .failure(minutes.isNaN ? .notDuration : .notPositive) }
        guard minutes < 1_000_000 else { return .failure(.tooLong) }
        guard let decimal = Decimal(minutes) else { return .failure(.notDuration) }
        return bounded(decimal.rounded(times: 60_000))
    }

    /// Reads `"1h30m"`: units in falling order, each at most once.
    package static func span(_ text: String) -> Result<TimeSpan, Problem> {
        var rest = text.utf8[...]
        var units = Self.units[...]
        var sum: Int64 = 0
        guard !rest.isEmpty else { return .failure(.notDuration) }
        while !rest.isEmpty {
            let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
            let name = rest.dropFirst(digits.count).prefix { !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0) }
            guard !digits.isEmpty,
                let index = units.firstIndex(where: { $0.name.utf8.elementsEqual(name) })
            else { return .failure(.notDuration) }
            guard let count = Int64(Substring(digits)),
                case (let part, false) = count.multipliedReportingOverflow(by: units[index].milliseconds),
                case (let total, false) = sum.addingReportingOverflow(part)
            else { return .failure(.tooLong) }
            sum = total
            units = units[(index + 1)...]
            rest = rest.dropFirst(digits.count + name.count)
        }
        return bounded(sum)
    }

    /// A duration in an option, a file or a variable: the same strings, and a bare number means minutes.
    package static func span(option text: String) -> Result<TimeSpan, Problem> {
        let isNumber = text.utf8.allSatisfy {
            UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || $0 == UInt8(ascii: ".")
        }
        guard isNumber, let minutes = Double(text) else { return span(text) }
        return span(minutes: minutes)
    }

    /// The shortest string that reads back as the same span, such as `1h30m`.
    package static func text(_ span: TimeSpan) -> String {
        guard span.milliseconds > 0 else { return "0ms" }
        var rest = span.milliseconds
        var text = ""
        for unit in units where rest >= unit.milliseconds {
            text += "\(rest / unit.milliseconds)\(unit.name)"
            rest %= unit.milliseconds
        }
        return text
    }

    private static let units: [(name: String, milliseconds: Int64)] = [
        ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
    ]

    private static func bounded(_ milliseconds: Int64) -> Result<TimeSpan, Problem> {
        guard milliseconds > 0 else { return .failure(.notPositive) }
        guard milliseconds <= TimeSpan.longest.milliseconds else { return .failure(.tooLong) }
        return .success(TimeSpan(milliseconds: milliseconds))
    }
}

/// A positive number below a million as the decimal it was written as: `digits × 10^exponent`.
private struct Decimal {
    private let digits: UInt128
    private let exponent: Int

    /// Reads Swift's own shortest form, which knows no locale: `0.5`, `1e-05`, `12345.678`.
    init?(_ number: Double) {
        let parts = number.description.split(separator: "e")
        guard let mantissa = parts.first, let power = Int(parts.count > 1 ? parts[1] : "0") else {
            return nil
        }
        let sides = mantissa.split(separator: ".", omittingEmptySubsequences: false)
        let fraction = sides.count > 1 ? sides[1] : ""
        guard let whole = sides.first, let digits = UInt128(whole + fraction) else { return nil }
        self.digits = digits
        exponent = power - fraction.utf8.count
    }

    /// Half rounds up. The number is below a million, so nothing here comes near 128 bits.
    func rounded(times factor: UInt128) -> Int64 {
        let product = digits * factor
        if exponent >= 0 { return Int64(clamping: product * Self.power(exponent)) }
        guard exponent > -30 else { return 0 }
        let divisor = Self.power(-exponent)
        return Int64(clamping: (2 * product + divisor) / (2 * divisor))
    }

    private static func power(_ exponent: Int) -> UInt128 {
        (0..<exponent).reduce(into: 1) { power, _ in power *= 10 }
    }
}
