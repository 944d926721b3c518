package import RoomCore

/// Instants as `yyyy-MM-ddTHH:mm:ss.SSSZ`, by integer arithmetic: no locale, no time zone, no leap second.
package enum TimeText {
    /// Of the text, in bytes.
    static let length = 24

    package static func text(_ instant: Instant) -> String {
        String(unsafeUninitializedCapacity: length) { bytes in
            write(instant, to: bytes)
            return length
        }
    }

    /// Fills the first 24 bytes with the text.
    static func write(_ instant: Instant, to bytes: UnsafeMutableBufferPointer<UInt8>) {
        let (days, time) = instant.milliseconds.flooredDivision(by: 86_400_000)
        let date = CivilDate(daysSinceEpoch: days)
        put(date.year, width: 4, then: "-", at: 0, of: bytes)
        put(date.month, width: 2, then: "-", at: 5, of: bytes)
        put(date.day, width: 2, then: "T", at: 8, of: bytes)
        put(time / 3_600_000, width: 2, then: ":", at: 11, of: bytes)
        put(time / 60_000 % 60, width: 2, then: ":", at: 14, of: bytes)
        put(time / 1_000 % 60, width: 2, then: ".", at: 17, of: bytes)
        put(time % 1_000, width: 3, then: "Z", at: 20, of: bytes)
    }

    /// Reads exactly that form; nil for anything else, also for a 30th of February.
    package static func instant(_ text: String) -> Instant? {
        let bytes = Array(text.utf8)
        guard bytes.count == 24 else { return nil }
        for (index, mark) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "."), (23, "Z")]
        where bytes[index] != mark.utf8.first { return nil }
        guard let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10]), let hour = number(bytes[11..<13]),
            let minute = number(bytes[14..<16]), let second = number(bytes[17..<19]),
            let fraction = number(bytes[20..<23])
        else { return nil }
        guard year >= 1, (1...12).contains(month), hour < 24, minute < 60, second < 60 else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        guard CivilDate(daysSinceEpoch: date.daysSinceEpoch) == date else { return nil }
        let time = ((hour * 60 + minute) * 60 + second) * 1_000 + fraction
        return Instant(milliseconds: date.daysSinceEpoch * 86_400_000 + time)
    }

    private static func put(
        _ number: Int64, width: Int, then mark: Unicode.Scalar, at start: Int,
        of bytes: UnsafeMutableBufferPointer<UInt8>
    ) {
        var (index, rest) = (start + width, number)
        bytes[index] = UInt8(ascii: mark)
        while index > start {
            index -= 1
            bytes[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var number: Int64 = 0
        for digit in digits {
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
            number = number * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return number
    }
}

/// A day of the Gregorian calendar, counted as in Howard Hinnant's `days_from_civil`: years begin in March,
/// so that the leap day is the last one, and 400 years are an era of 146,097 days.
private struct CivilDate: Equatable {
    let year: Int64
    let month: Int64
    let day: Int64

    init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    init(daysSinceEpoch: Int64) {
        let (era, dayOfEra) = (daysSinceEpoch + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    var daysSinceEpoch: Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = marchYear.flooredDivision(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

extension Int64 {
    /// Quotient rounded down, and a remainder that is never negative: right also before 1970.
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
