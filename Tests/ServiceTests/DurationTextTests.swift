import Testing

@testable import Service

struct DurationTextTests {
    @Test(
        "durations with units, and bare numbers as minutes",
        arguments: [
            ("90s", 90_000), ("60m", 3_600_000), ("1h30m", 5_400_000), ("250ms", 250), ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005), ("0s", 0), ("60", 3_600_000), ("0", 0), ("0.5", 30_000),
            ("1.00000834", 60_001),
            ("1.00000833", 60_000), ("0.00000833", 0), ("007m", 420_000), ("90m", 5_400_000),
            ("0.123456789123456789", 7407), ("106751991167d", 9_223_372_036_828_800_000),
            ("9223372036854775807ms", Int64.max), ("153722867280912", 9_223_372_036_854_720_000),
        ])
    func right(text: String, milliseconds: Int64) {
        #expect(DurationText.parse(text) == milliseconds)
    }

    @Test(
        "what is no duration is none",
        arguments: [
            "", " ", "m", "5 m", " 5m", "5m ", "-5m", "+5m", "5M", "5min", "1h5", "5m1h", "1m1m", "1ms1s",
            "1.5h", ".5", "5.",
            "1.2.3", "1,5", "1e3", "٣m", "5µs", "106751991168d", "9223372036854775808ms", "153722867280913",
            "99999999999999999999", "1d9223372036854775807ms", "0x10", "5m\0", "Infinity",
        ])
    func wrong(text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test("a bare number may mean seconds where that is asked for")
    func seconds() {
        #expect(DurationText.parse("10", bare: .seconds) == 10_000)
        #expect(DurationText.parse("0.0005", bare: .seconds) == 1)
        #expect(DurationText.parse("0.0004", bare: .seconds) == 0)
        #expect(DurationText.parse("10m", bare: .seconds) == 600_000)
    }

    @Test("a formatted duration reads back as itself")
    func roundTrip() {
        #expect(DurationText.format(0) == "0s")
        #expect(DurationText.format(5_400_000) == "1h30m")
        #expect(DurationText.format(-1001) == "-1s1ms")
        #expect(DurationText.format(.min).hasPrefix("-"))
        var generator = SystemRandomNumberGenerator()
        for shift in 0..<63 {
            let value = Int64.random(in: 0...(Int64.max >> Int64(shift)), using: &generator)
            #expect(DurationText.parse(DurationText.format(value)) == value)
        }
    }
}
