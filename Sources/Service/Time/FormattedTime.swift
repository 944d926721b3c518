/// Instants as text, exactly `yyyy-MM-ddTHH:mm:ss.SSSZ`, in both directions.
///
/// Done with the arithmetic of the civil calendar and not with Foundation's formatters: these cost megabytes of
/// memory and microseconds an event, and the format is part of the wire contract.
package enum FormattedTime {
    /// Year 1 to 9999, what four digits can say.
    package static let range: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    private static let millisecondsPerDay: Int64 = 86_400_000

    /// The instant as text. Outside the years 1 to 9999 the nearest instant inside is given, never a malformed text.
    package static func iso(_ milliseconds: Int64) -> String {
        let instant = min(max(milliseconds, range.lowerBound), range.upperBound)
        let (year, month, day) = civil(day: floorDivide(instant, millisecondsPerDay))
        let inDay = instant - floorDivide(instant, millisecondsPerDay) * millisecondsPerDay
        return String(unsafeUninitializedCapacity: 24) { buffer in
            func put(_ value: Int64, at offset: Int, digits: Int) {
                var rest = value
                for index in stride(from: offset + digits - 1, through: offset, by: -1) {
                    buffer[index] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
            }
            put(year, at: 0, digits: 4)
            buffer[4] = UInt8(ascii: "-")
            put(month, at: 5, digits: 2)
            buffer[7] = UInt8(ascii: "-")
            put(day, at: 8, digits: 2)
            buffer[10] = UInt8(ascii: "T")
            put(inDay / 3_600_000, at: 11, digits: 2)
            buffer[13] = UInt8(ascii: ":")
            put(inDay / 60_000 % 60, at: 14, digits: 2)
            buffer[16] = UInt8(ascii: ":")
            put(inDay / 1000 % 60, at: 17, digits: 2)
            buffer[19] = UInt8(ascii: ".")
            put(inDay % 1000, at: 20, digits: 3)
            buffer[23] = UInt8(ascii: "Z")
            return 24
        }
    }

    /// The time of day of an instant, `HH:mm:ss.SSS` in UTC, for lines that a person reads.
    package static func timeOfDay(_ milliseconds: Int64) -> String {
        String(iso(milliseconds).dropFirst(11).dropLast())
    }

    /// The instant that a text names, or nil. Only the exact form is read, and only dates that exist.
    package static func parse(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 24 else { return nil }
        for (index, separator) in zip([4, 7, 10, 13, 16, 19, 23], "--T::.Z".utf8)
        where bytes[index] != separator {
            return nil
        }
        guard let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10]),
            let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]),
            let second = number(bytes[17..<19]), let milli = number(bytes[20..<23]),
            year >= 1, hour < 24, minute < 60, second < 60
        else { return nil }
        let count = dayCount(year: year, month: month, day: day)
        // A date that does not exist (31 April, month 13) comes back as another one.
        guard civil(day: count) == (year, month, day) else { return nil }
        return count * millisecondsPerDay + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            value = value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// Days since 1970-01-01 of a civil date. The year is counted from March, so that the leap day is its last.
    private static func dayCount(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floorDivide(shifted, 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The civil date of a day since 1970-01-01; the reverse of `dayCount`.
    private static func civil(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9)
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
        value >= 0 ? value / by : (value - by + 1) / by
    }
}
