import AMQP
import Contract
import OvertimeClient
import RoomCore

/// A dead letter for people. Whatever a stranger sent is escaped before it gets here.
enum LetterText {
    static var header: String {
        Output.colour(
            row("ID", "AGE", "REASON", "ORIGIN", "COMMAND", "ROOM", "KEY", "SIZE", "DETAIL"), .dim)
    }

    static func line(_ letter: Letter, id: LetterID, now: Instant) -> String {
        let echo = letter.echo
        return row(
            id.text, age(letter, now), letter.reason ?? "-", origin(letter), echo.command?.rawValue ?? "-",
            echo.room?.text ?? "-", echo.key?.text ?? "-", "\(letter.size)", letter.detail ?? "-")
    }

    /// The command in a few words.
    static func title(_ letter: Letter) -> String {
        let echo = letter.echo
        let words = [echo.command?.rawValue, echo.room?.text].compactMap { $0 }
        return words.isEmpty ? "no command" : short(words.joined(separator: " "), 40)
    }

    static func outcome(
        _ outcome: DeadLetterBox.Outcome, id: LetterID, title: String, leftOut: [String]
    ) -> String {
        let head = "  \(id)  \(title)"
        let kept = Output.colour("kept", .red) + head
        switch outcome {
        case .dropped: return Output.colour("dropped", .yellow) + head
        case .retried:
            let without =
                leftOut.isEmpty
                ? "" : ", without " + leftOut.map(PrintableText.escaped).joined(separator: ", ")
            return Output.colour("retried", .green) + head + without
        case .returned: return kept + ": no queue takes it; start a worker once, or check amqp.shards"
        case .refused: return kept + ": the broker refused it; the queue of commands is full or has no quorum"
        case .unknown: return kept + ": the broker has not confirmed it in time; it may have been taken"
        case .tooLarge: return kept + ": its body is larger than any command and can only be dropped"
        }
    }

    static func lines(_ letter: Letter, id: LetterID, now: Instant) -> [String] {
        let echo = letter.echo
        let time = letter.time.map { "\(TimeText.text($0)) (\(age(letter, now)) ago)" }
        let facts: [(String, String?)] = [
            ("id", id.text), ("time", time), ("reason", letter.reason), ("detail", letter.detail),
            ("exchange", letter.origin?.exchange), ("queue", letter.origin?.queue ?? "commands"),
            ("routing key", PrintableText.escaped(letter.routingKey.bytes)),
            ("command", echo.command?.rawValue), ("room", echo.room?.text), ("key", echo.key?.text),
            ("size", "\(letter.size) bytes"),
        ]
        var lines = facts.map { pair($0.0, PrintableText.escaped($0.1 ?? "-")) }
        lines += section(
            "properties", letter.properties.named.map { ($0.name, LetterEncoder.text($0.value)) })
        lines += section(
            letter.properties.headersTooDeep ? "headers: nested too deep to be shown" : "headers",
            (letter.properties.headers?.entries ?? []).map {
                (PrintableText.escaped($0.key.bytes), LetterEncoder.text($0.value))
            })
        return lines + body(letter.body)
    }

    private static func body(_ body: Body) -> [String] {
        guard case .bytes(let bytes) = body else { return ["", title("body: too large to be shown")] }
        if let lines = PrettyJSON.lines(bytes) { return ["", title("body: JSON")] + lines }
        if let text = String(validating: bytes, as: UTF8.self) {
            return ["", title("body: text, no valid JSON"), PrintableText.escaped(text)]
        }
        return ["", title("body: bytes, no UTF-8")] + HexText.dump(bytes)
    }

    private static func section(_ name: String, _ rows: [(String, String)]) -> [String] {
        ["", title(name)] + (rows.isEmpty ? ["none"] : rows.map { pair($0.0, $0.1) })
    }

    private static func title(_ text: String) -> String { Output.colour(text, .bold) }

    private static func pair(_ name: String, _ value: String) -> String {
        EventText.pad(name, 24) + " " + value
    }

    private static func row(_ cells: String...) -> String {
        let widths = [13, 12, 16, 18, 8, 16, 16, 7, 0]
        return zip(cells, widths).map { cell, width in
            width == 0 ? PrintableText.escaped(cell) : EventText.pad(short(cell, width), width)
        }.joined(separator: " ")
    }

    /// Whole letters' ids are never cut: they are what is copied.
    private static func short(_ text: String, _ width: Int) -> String {
        let text = PrintableText.escaped(text)
        return text.count <= width || width < 14 ? text : text.prefix(width - 1) + "…"
    }

    private static func origin(_ letter: Letter) -> String {
        letter.origin?.queue ?? letter.origin?.exchange ?? (letter.reason == nil ? "-" : "commands")
    }

    /// In its two largest units.
    private static func age(_ letter: Letter, _ now: Instant) -> String {
        guard let age = letter.age(at: now) else { return "-" }
        let hours = age.milliseconds / 3_600_000
        return hours < 48 ? HumanTime.span(age) : "\(hours / 24) d \(hours % 24) h"
    }
}
