/// Valid JSON laid out for people: two spaces a level, strings and numbers spelt as they were sent.
package enum PrettyJSON {
    /// The lines, with unsafe characters escaped; nil for what is not strict JSON.
    package static func lines(_ bytes: [UInt8]) -> [String]? {
        guard case .success = StrictJSON.parse(bytes, maximumBytes: .max) else { return nil }
        var layout = Layout()
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars { layout.take(scalar) }
        return layout.lines + [layout.line]
    }

    private struct Layout {
        var lines: [String] = []
        var line = ""
        private var depth = 0
        private var isInString = false
        private var isEscaped = false
        /// An opening bracket whose line is still to be ended, unless the closing one follows.
        private var isJustOpened = false

        mutating func take(_ scalar: Unicode.Scalar) {
            if isInString { return takeInString(scalar) }
            switch scalar {
            case " ", "\n", "\r", "\t": return
            case "{", "[":
                beginElement()
                append(scalar)
                depth += 1
                isJustOpened = true
            case "}", "]":
                depth -= 1
                if !isJustOpened { breakLine() }
                isJustOpened = false
                append(scalar)
            case ",":
                append(scalar)
                breakLine()
            case ":": line += ": "
            default:
                beginElement()
                append(scalar)
                isInString = scalar == "\""
            }
        }

        private mutating func takeInString(_ scalar: Unicode.Scalar) {
            line += PrintableText.escaped(String(scalar))
            if isEscaped {
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == "\"" {
                isInString = false
            }
        }

        private mutating func beginElement() {
            if isJustOpened { breakLine() }
            isJustOpened = false
        }

        private mutating func append(_ scalar: Unicode.Scalar) { line.unicodeScalars.append(scalar) }

        private mutating func breakLine() {
            lines.append(line)
            line = String(repeating: "  ", count: depth)
        }
    }
}
