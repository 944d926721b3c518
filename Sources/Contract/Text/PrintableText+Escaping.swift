/// Text that is to be shown whole: nothing is left out, and what would steer a terminal is spelt out.
extension PrintableText {
    /// Control characters, and what turns or hides the text around it (U+202E and its kind, separators of lines).
    package static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return isControl(scalar) }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
            true
        default: isControl(scalar)
        }
    }

    /// The text with `\n`, `\t` and `\u009b` for what is unsafe, and backslashes as they are.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if isUnsafe(scalar) { result += escape(scalar) } else { result.unicodeScalars.append(scalar) }
        }
        return result
    }

    /// Bytes as text if they are UTF-8, else in hexadecimal digits.
    package static func escaped(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self).map { escaped($0) } ?? "0x" + HexText.digits(bytes)
    }

    /// A JSON string that reads back as the text.
    package static func quotedJSON(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" {
                result += "\\"
                result.unicodeScalars.append(scalar)
            } else if isUnsafe(scalar) {
                result += escape(scalar)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// As JSON spells it: beyond U+FFFF in two halves.
    private static func escape(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default:
            return String(scalar).utf16.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined()
        }
    }
}
