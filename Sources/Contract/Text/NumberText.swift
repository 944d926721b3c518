package import RoomCore

/// Minutes and seconds as numbers on the wire, rounded in integers and never with an exponent.
package enum NumberText {
    /// Minutes with up to 4 decimals, half up: `10`, `18.2`, `0.0042`.
    package static func minutes(_ span: TimeSpan) -> String {
        // A ten-thousandth of a minute is 6 ms.
        let magnitude = span.milliseconds.magnitude
        return text(
            isNegative: span.milliseconds < 0, magnitude / 6 + (magnitude % 6 >= 3 ? 1 : 0), decimals: 4)
    }

    /// Seconds with up to 3 decimals, exact.
    package static func seconds(_ span: TimeSpan) -> String {
        text(isNegative: span.milliseconds < 0, span.milliseconds.magnitude, decimals: 3)
    }

    /// `units × 10^-decimals`, without trailing zeros.
    private static func text(isNegative: Bool, _ units: UInt64, decimals: Int) -> String {
        var scale: UInt64 = 1
        for _ in 0..<decimals { scale *= 10 }
        var fraction = units % scale
        var width = decimals
        while width > 0, fraction % 10 == 0 {
            fraction /= 10
            width -= 1
        }
        let sign = isNegative && units > 0 ? "-" : ""
        guard width > 0 else { return "\(sign)\(units / scale)" }
        let digits = String(fraction)
        let zeros = String(repeating: "0", count: width - digits.utf8.count)
        return "\(sign)\(units / scale).\(zeros)\(digits)"
    }
}
