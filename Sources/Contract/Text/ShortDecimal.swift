import RoomCore

/// Minutes or seconds as a number on the wire, rounded in integers: never an exponent, no trailing zeros.
struct ShortDecimal {
    let isNegative: Bool
    let whole: UInt64
    /// What stands behind the point, as a number of `width` digits; none where that is 0.
    private(set) var fraction: UInt64
    private(set) var width: Int

    /// Up to 4 decimals, half up: `10`, `18.2`, `0.0042`.
    init(minutes span: TimeSpan) {
        // A ten-thousandth of a minute is 6 ms.
        let magnitude = span.milliseconds.magnitude
        let units = magnitude / 6 + (magnitude % 6 >= 3 ? 1 : 0)
        self.init(isNegative: span.milliseconds < 0, units, scale: 10_000, width: 4)
    }

    /// Up to 3 decimals, exact.
    init(seconds span: TimeSpan) {
        self.init(isNegative: span.milliseconds < 0, span.milliseconds.magnitude, scale: 1_000, width: 3)
    }

    private init(isNegative: Bool, _ units: UInt64, scale: UInt64, width: Int) {
        self.isNegative = isNegative && units > 0
        (whole, fraction) = units.quotientAndRemainder(dividingBy: scale)
        self.width = width
        while self.width > 0, fraction % 10 == 0 {
            fraction /= 10
            self.width -= 1
        }
    }
}
