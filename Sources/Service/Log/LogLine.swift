/// One log line as bytes, in either format: pure, so that escaping is tested without a file.
struct LogLine {
    /// As it stands in the line.
    let time: String
    let level: Log.Level
    let component: String
    let message: String
    let fields: LogFields

    /// Longer texts are cut: a line must stay a line whatever a peer sends.
    static let longestText = 2048

    /// Appends one JSON object and a line feed.
    func writeJSON(to line: inout [UInt8]) {
        line += "{\"time\":\"".utf8
        line += time.utf8
        line += "\",\"level\":\"".utf8
        line += level.name.utf8
        line += "\",\"component\":".utf8
        Self.appendQuoted(component, to: &line)
        line += ",\"message\":".utf8
        Self.appendQuoted(message, to: &line)
        for field in fields.entries {
            line.append(UInt8(ascii: ","))
            Self.appendQuoted(field.name, to: &line)
            line.append(UInt8(ascii: ":"))
            switch field.value {
            case .string(let text): Self.appendQuoted(text, to: &line)
            // JSON has no word for infinity; as text it is at least seen.
            case .double(let number) where !number.isFinite: Self.appendQuoted("\(number)", to: &line)
            default: line += Self.plain(field.value).utf8
            }
        }
        line += "}\n".utf8
    }

    /// Appends a line for people.
    func writeText(colour: Bool, to line: inout [UInt8]) {
        let name = level.name + String(repeating: " ", count: max(0, 5 - level.name.count))
        let source = component + String(repeating: " ", count: max(0, 9 - component.count))
        line +=
            (colour ? "\u{1B}[2m\(time)\u{1B}[0m \(level.colour)\(name)\u{1B}[0m" : "\(time) \(name)").utf8
        line += " \(source) ".utf8
        Self.appendEscaped(message, to: &line)
        for field in fields.entries {
            line += (colour ? " \u{1B}[2m" : " ").utf8
            Self.appendEscaped(field.name, to: &line)
            line += (colour ? "=\u{1B}[0m" : "=").utf8
            if case .string(let text) = field.value {
                if text.isEmpty
                    || text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x22 || $0 == 0x3D || $0 == 0x7F })
                {
                    Self.appendQuoted(text, to: &line)
                } else {
                    Self.appendEscaped(text, to: &line)
                }
            } else {
                line += Self.plain(field.value).utf8
            }
        }
        line.append(UInt8(ascii: "\n"))
    }

    private static func plain(_ value: LogValue) -> String {
        switch value {
        case .string(let text): text
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): flag ? "true" : "false"
        case .null: "null"
        }
    }

    private static func appendQuoted(_ text: String, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        appendEscaped(text, to: &line)
        line.append(UInt8(ascii: "\""))
    }

    /// JSON's escapes, and C1 controls as well: some terminals obey them.
    private static func appendEscaped(_ text: String, to line: inout [UInt8]) {
        var text = text
        let wasPlain = text.withUTF8 { bytes in
            guard bytes.count <= longestText, bytes.allSatisfy(isPlain) else { return false }
            line.append(contentsOf: bytes)
            return true
        }
        if !wasPlain { appendScalars(of: text, to: &line) }
    }

    /// What stands for itself, in nearly every text there is.
    private static func isPlain(_ byte: UInt8) -> Bool {
        0x20..<0x7F ~= byte && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private static func appendScalars(of text: String, to line: inout [UInt8]) {
        var count = 0
        for scalar in text.unicodeScalars {
            if count >= longestText {
                line += "…".utf8
                return
            }
            count += UTF8.width(scalar)
            switch scalar {
            case "\"": line += "\\\"".utf8
            case "\\": line += "\\\\".utf8
            case "\n": line += "\\n".utf8
            case "\r": line += "\\r".utf8
            case "\t": line += "\\t".utf8
            default:
                if scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
                    || (0x2028...0x202E).contains(scalar.value)
                {
                    let hex = String(scalar.value, radix: 16)
                    line += "\\u\(String(repeating: "0", count: 4 - hex.count))\(hex)".utf8
                } else {
                    line += String(scalar).utf8
                }
            }
        }
    }
}
