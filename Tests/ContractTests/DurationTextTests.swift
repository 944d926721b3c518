import Contract
import RoomCore
import Testing

@Suite("Durations")
struct DurationTextTests {
    @Test(
        "a duration is read to the millisecond",
        arguments: [
            ("1", 60_000), ("60", 3_600_000), ("0.5", 30_000), ("2.0", 120_000), ("1e1", 600_000),
            ("1e-5", 1), ("0.00001", 1), ("0.000008", 0), ("0.0000083333", 0), ("0.0000083334", 1),
            ("0.000025", 2), ("0.000024999", 1), ("0.000041666", 2), ("0.000041667", 3), ("0.1", 6_000),
            ("0.7", 42_000), ("18.2", 1_092_000), ("1.005", 60_300), ("0.001", 60), ("0.29", 17_400),
            ("1.0000083333", 60_000), ("1.0000083334", 60_001), ("527040", 31_622_400_000),
            ("527040.000001", 31_622_400_000), ("5.2704e5", 31_622_400_000), ("1e-300", 0), ("5e-324", 0),
            (#""1h30m""#, 5_400_000), (#""90s""#, 90_000), (#""250ms""#, 250), (#""1h1m1s1ms""#, 3_661_001),
            (#""0h5m""#, 300_000), (#""007m""#, 420_000), (#""1ms""#, 1), (#""8784h""#, 31_622_400_000),
            (#""1h1ms""#, 3_600_001), (#""90m""#, 5_400_000), (#""31622400000ms""#, 31_622_400_000),
        ] as [(String, Int64)])
    func read(text: String, milliseconds: Int64) throws {
        let value = try StrictJSON.parse(Array(text.utf8)).get()
        let expected: Result<TimeSpan, DurationText.Problem> =
            milliseconds > 0
            ? .success(TimeSpan(milliseconds: milliseconds))
            : .failure(DurationText.Problem(detail: "must be at least 1 ms"))
        #expect(DurationText.span(value) == expected)
    }

    @Test(
        "what is no duration is refused with the reason",
        arguments: [
            ("0", "at least 1 ms"), ("-1", "at least 1 ms"), ("-0.5", "at least 1 ms"),
            ("-0.0", "at least 1 ms"),
            (#""0s""#, "at least 1 ms"), (#""0h0m0s0ms""#, "at least 1 ms"),
            ("527041", "at most 366 days"), ("527040.01", "at most 366 days"), ("1e300", "at most 366 days"),
            ("9223372036854775807", "at most 366 days"), (#""8785h""#, "at most 366 days"),
            (#""31622400001ms""#, "at most 366 days"),
            (#""99999999999999999999h""#, "at most 366 days"),
            (#""9223372036854775807h""#, "at most 366 days"),
            (#""9223372036854775807ms1""#, "number of minutes"),
            (#""""#, "number of minutes"), (#""5""#, "number of minutes"), (#""1.5h""#, "number of minutes"),
            (#""m""#, "number of minutes"), (#""1m1h""#, "number of minutes"),
            (#""1m1m""#, "number of minutes"),
            (#""1s1m""#, "number of minutes"), (#""1ms1s""#, "number of minutes"),
            (#"" 1m""#, "number of minutes"),
            (#""1m ""#, "number of minutes"), (#""1 m""#, "number of minutes"),
            (#""+1m""#, "number of minutes"),
            (#""-1m""#, "number of minutes"), (#""1M""#, "number of minutes"),
            (#""1d""#, "number of minutes"),
            (#""1min""#, "number of minutes"), (#""١m""#, "number of minutes"),
            (#""1h30""#, "number of minutes"),
            ("null", "number of minutes"), ("true", "number of minutes"), ("[1]", "number of minutes"),
            ("{}", "number of minutes"),
        ])
    func refused(text: String, fragment: String) throws {
        let value = try StrictJSON.parse(Array(text.utf8)).get()
        guard case .failure(let problem) = DurationText.span(value) else {
            Issue.record("\(text) was taken for a duration")
            return
        }
        #expect(problem.detail.contains(fragment))
    }

    @Test("every thousandth of a minute up to ten is read exactly")
    func decimals() {
        for thousandths in 1...10_000 {
            let text = "\(thousandths / 1_000).\(String(1_000 + thousandths % 1_000).dropFirst())"
            let span = Double(text).map { DurationText.span(minutes: $0) }
            #expect(span == .success(TimeSpan(milliseconds: Int64(thousandths) * 60)))
        }
    }

    @Test("not a number and infinity are no durations")
    func strangeDoubles() {
        for number in [Double.nan, .infinity, -.infinity, .greatestFiniteMagnitude] {
            if case .success = DurationText.span(minutes: number) { Issue.record("\(number)") }
        }
    }

    @Test(
        "in an option a bare number means minutes",
        arguments: [
            ("10", 600_000), ("0.5", 30_000), ("90s", 90_000), ("", 0), (".", 0), ("1.2.3", 0), ("1e1", 0),
            ("-1", 0),
            ("inf", 0), ("0", 0),
        ] as [(String, Int64)])
    func options(text: String, milliseconds: Int64) {
        let span = try? DurationText.span(option: text).get()
        #expect(span == (milliseconds > 0 ? TimeSpan(milliseconds: milliseconds) : nil))
    }

    @Test(
        "a written duration reads back",
        arguments: [1, 999, 1_000, 61_001, 3_600_000, 5_400_250, 31_622_400_000] as [Int64])
    func roundTrip(milliseconds: Int64) {
        let span = TimeSpan(milliseconds: milliseconds)
        #expect(DurationText.span(DurationText.text(span)) == .success(span))
    }
}
