import FoundationEssentials
import Testing

@testable import Service

struct FormattedTimeTests {
    @Test(
        "instants and their texts, both ways",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1, "1970-01-01T00:00:00.001Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"), (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (1_795_956_000_000, "2026-11-29T12:40:00.000Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-2_203_891_200_001, "1900-02-28T23:59:59.999Z"),
            (-2_203_891_200_000, "1900-03-01T00:00:00.000Z"), (2_147_483_648_000, "2038-01-19T03:14:08.000Z"),
        ])
    func table(milliseconds: Int64, text: String) {
        #expect(FormattedTime.iso(milliseconds) == text)
        #expect(FormattedTime.parse(text) == milliseconds)
    }

    @Test(
        "what is not exactly the form or no date is refused",
        arguments: [
            "", "2026-11-29T12:40:00Z", "2026-11-29T12:40:00.000", "2026-11-29T12:40:00.000z",
            "2026-11-29 12:40:00.000Z",
            "2026-11-29T12:40:00.0000Z", "2026-11-29T12:40:00,000Z", "2026-13-01T00:00:00.000Z",
            "2026-00-01T00:00:00.000Z",
            "2026-04-31T00:00:00.000Z", "2026-02-29T00:00:00.000Z", "2100-02-29T00:00:00.000Z",
            "2026-01-00T00:00:00.000Z",
            "2026-01-32T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:60:00.000Z",
            "2026-01-01T00:00:60.000Z",
            "0000-01-01T00:00:00.000Z", "-001-01-01T00:00:00.000Z", "2026-1 -01T00:00:00.000Z",
            "2026-01-01T00:00:00.+01Z",
            "２026-01-01T00:00:00.00Z", "2026-11-29T12:40:00.000Z ", "2026-11-29T12:40:00.000+",
        ])
    func refused(text: String) {
        #expect(FormattedTime.parse(text) == nil)
    }

    @Test("random instants of all years read back as themselves and agree with Foundation")
    func random() throws {
        let foundation = Date.ISO8601FormatStyle(includingFractionalSeconds: false)
        for _ in 0..<20_000 {
            let instant = Int64.random(in: FormattedTime.range)
            let text = FormattedTime.iso(instant)
            #expect(FormattedTime.parse(text) == instant)
            // Before 1582 Foundation's calendar is the Julian one.
            guard instant > -12_000_000_000_000 else { continue }
            let seconds = instant >= 0 ? instant / 1000 : (instant - 999) / 1000
            let date = Date(timeIntervalSince1970: Double(seconds))
            #expect(text.prefix(19) + "Z" == date.formatted(foundation))
        }
    }

    @Test("an instant that four digits cannot say becomes the nearest that they can")
    func outside() {
        #expect(FormattedTime.iso(.max) == "9999-12-31T23:59:59.999Z")
        #expect(FormattedTime.iso(.min) == "0001-01-01T00:00:00.000Z")
        #expect(FormattedTime.timeOfDay(3_723_004) == "01:02:03.004")
    }

    @Test("the machine's clock is in this century and the monotonic one runs forward")
    func clocks() {
        #expect(FormattedTime.iso(SystemClock().nowMilliseconds()).hasPrefix("20"))
        let first = MonotonicClock.nanoseconds()
        #expect(MonotonicClock.nanoseconds() >= first)
    }
}
