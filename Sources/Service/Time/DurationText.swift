/// Durations as people write them in options, files and variables: `90s`, `1h30m`, `250ms`, `7d`, or a bare number.
package enum DurationText {
    /// What a number without a unit means.
    package enum BareUnit: Int64, Sendable {
        case seconds = 1000
        case minutes = 60_000
    }

    private static let units: [(name: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// Milliseconds, zero included, or nil where the text is no duration or too long to count.
    ///
    /// Units come once each and in falling order, as in `1d2h3m4s5ms`: anything else is more likely a slip than a wish.
    package static func parse(_ text: String, bare: BareUnit = .minutes) -> Int64? {
        let characters = Array(text.utf8)
        if let last = characters.last, isDigit(last) {
            return parseNumber(characters, unit: bare.rawValue)
        }
        var total: Int64 = 0
        var nextUnit = 0
        var index = 0
        while index < characters.count {
            let start = index
            while index < characters.count, isDigit(characters[index]) { index += 1 }
            guard let count = Int64(String(decoding: characters[start..<index], as: UTF8.self)) else {
                return nil
            }
            let nameStart = index
            while index < characters.count, !isDigit(characters[index]) { index += 1 }
            let name = String(decoding: characters[nameStart..<index], as: UTF8.self)
            guard let unit = units.firstIndex(where: { $0.name == name }), unit >= nextUnit else {
                return nil
            }
            nextUnit = unit + 1
            let (part, tooLong) = count.multipliedReportingOverflow(by: units[unit].milliseconds)
            let (sum, sumTooLong) = total.addingReportingOverflow(part)
            if tooLong || sumTooLong { return nil }
            total = sum
        }
        return characters.isEmpty ? nil : total
    }

    /// The shortest way to write a duration in whole units; `0s` for none.
    package static func format(_ milliseconds: Int64) -> String {
        guard milliseconds != 0 else { return "0s" }
        var rest = milliseconds.magnitude
        var text = milliseconds < 0 ? "-" : ""
        for unit in units where rest >= UInt64(unit.milliseconds) {
            text += "\(rest / UInt64(unit.milliseconds))\(unit.name)"
            rest %= UInt64(unit.milliseconds)
        }
        return text
    }

    /// `12` or `0.5` of a unit, in decimal arithmetic, half a millisecond rounded up.
    private static func parseNumber(_ characters: [UInt8], unit: Int64) -> Int64? {
        let parts = characters.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        // Nine decimals of an hour are below a microsecond; more would only overflow.
        guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isDigit) }),
            let whole = Int64(String(decoding: parts[0], as: UTF8.self))
        else { return nil }
        let (base, tooLong) = whole.multipliedReportingOverflow(by: unit)
        if tooLong { return nil }
        var fraction: Int64 = 0
        var scale: Int64 = 1
        for digit in (parts.count == 2 ? parts[1] : []).prefix(9) {
            fraction = fraction * 10 + Int64(digit - UInt8(ascii: "0"))
            scale *= 10
        }
        let (sum, sumTooLong) = base.addingReportingOverflow((fraction * unit * 2 + scale) / (scale * 2))
        return sumTooLong ? nil : sum
    }

    private static func isDigit(_ character: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
    }
}
