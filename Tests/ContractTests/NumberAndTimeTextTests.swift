import RoomCore
import Testing

@testable import Contract

@Suite("Numbers and times on the wire")
struct NumberAndTimeTextTests {
    private func text(_ number: ShortDecimal) -> String { JSONWriter.bytes { $0.decimal(number) }.text }

    @Test(
        "minutes have up to four decimals, half up",
        arguments: [
            (0, "0"), (1, "0"), (2, "0"), (3, "0.0001"), (8, "0.0001"), (9, "0.0002"), (250, "0.0042"),
            (600_000, "10"),
            (1_092_000, "18.2"), (299_999, "5"), (299_997, "5"), (299_996, "4.9999"), (60_006, "1.0001"),
            (60_002, "1"), (60_003, "1.0001"), (31_622_400_000, "527040"), (-600_000, "-10"), (-1, "0"),
            (-3, "-0.0001"),
            (.max, "153722867280912.9301"), (.min, "-153722867280912.9301"),
        ] as [(Int64, String)])
    func minutes(milliseconds: Int64, text: String) {
        #expect(self.text(ShortDecimal(minutes: TimeSpan(milliseconds: milliseconds))) == text)
    }

    @Test(
        "seconds are exact",
        arguments: [
            (0, "0"), (1, "0.001"), (10, "0.01"), (100, "0.1"), (1_000, "1"), (61_250, "61.25"),
            (-5, "-0.005"),
        ] as [(Int64, String)])
    func seconds(milliseconds: Int64, text: String) {
        #expect(self.text(ShortDecimal(seconds: TimeSpan(milliseconds: milliseconds))) == text)
    }

    @Test(
        "an instant prints and reads back",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"), (1_795_954_800_000, "2026-11-29T12:20:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func instants(milliseconds: Int64, text: String) {
        let instant = Instant(milliseconds: milliseconds)
        #expect(TimeText.text(instant) == text)
        #expect(TimeText.instant(text) == instant)
    }

    @Test(
        "what is not exactly that form is no instant",
        arguments: [
            "", "2026-11-29T12:20:00Z", "2026-11-29T12:20:00.000+00:00", "2026-11-29 12:20:00.000Z",
            "2026-02-29T00:00:00.000Z", "2100-02-29T00:00:00.000Z", "2026-04-31T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z", "2026-00-01T00:00:00.000Z", "2026-01-00T00:00:00.000Z",
            "2026-01-32T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:60:00.000Z",
            "2026-01-01T00:00:60.000Z", "0000-01-01T00:00:00.000Z", "+026-01-01T00:00:00.000Z",
            "2026-01-01t00:00:00.000z", "2026-01-01T00:00:00.00éZ",
        ])
    func noInstants(text: String) {
        #expect(TimeText.instant(text) == nil)
    }

    @Test("every day of 800 years prints and reads back in order")
    func everyDay() {
        var previous = ""
        let wrong = (-146_097...146_097).filter { day in
            let instant = Instant(milliseconds: Int64(day) * 86_400_000)
            let text = TimeText.text(instant)
            defer { previous = text }
            return text <= previous || TimeText.instant(text) != instant
        }
        #expect(wrong == [])
    }

    @Test("a printable text is bounded in bytes, whole in characters and free of control characters")
    func printable() {
        #expect(PrintableText.bounded("plain") == "plain")
        #expect(PrintableText.bounded("a\nb\u{7F}c\u{85}d") == "a?b?c?d")
        let long = PrintableText.bounded(String(repeating: "é", count: 1_000), to: 20)
        #expect(long == String(repeating: "é", count: 8) + "…")
        #expect(PrintableText.bounded(String(repeating: "é", count: 10), to: 20).utf8.count == 20)
    }
}
