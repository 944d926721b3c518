/// Reads JSON5 by recursive descent over valid UTF-8; the depth is bounded, so that no file exhausts the stack.
struct JSON5Reader {
    private static let deepest = 16

    private let bytes: [UInt8]
    private var index = 0
    private var line = 1

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func document() throws(JSON5.Failure) -> JSON5 {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        try skipSpace()
        let value = try self.value(depth: 0)
        try skipSpace()
        if index < bytes.count { throw failure("something follows the end of the document") }
        return value
    }

    private mutating func value(depth: Int) throws(JSON5.Failure) -> JSON5 {
        guard depth < Self.deepest else { throw failure("nested deeper than \(Self.deepest)") }
        switch peek() {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(try quoted())
        case nil: throw failure("ends where a value is missing")
        default: return try word()
        }
    }

    private mutating func object(depth: Int) throws(JSON5.Failure) -> JSON5 {
        index += 1
        var members: [JSON5.Member] = []
        while true {
            try skipSpace()
            if take("}") { return .object(members) }
            let start = line
            let quote = peek()
            let isQuoted = quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
            let name = isQuoted ? try quoted() : try bareName()
            if members.contains(where: { $0.name == name }) {
                throw JSON5.Failure(
                    line: start, reason: "the key \(Suggestion.printable(name)) stands there twice")
            }
            try skipSpace()
            guard take(":") else {
                throw failure("a colon is missing after the key \(Suggestion.printable(name))")
            }
            try skipSpace()
            members.append(JSON5.Member(name: name, line: start, value: try value(depth: depth + 1)))
            try skipSpace()
            if take(",") { continue }
            guard take("}") else { throw failure("a comma or } is missing") }
            return .object(members)
        }
    }

    private mutating func array(depth: Int) throws(JSON5.Failure) -> JSON5 {
        index += 1
        var elements: [JSON5] = []
        while true {
            try skipSpace()
            if take("]") { return .array(elements) }
            elements.append(try value(depth: depth + 1))
            try skipSpace()
            if take(",") { continue }
            guard take("]") else { throw failure("a comma or ] is missing") }
            return .array(elements)
        }
    }

    private mutating func bareName() throws(JSON5.Failure) -> String {
        let name = run()
        guard let first = name.utf8.first, !(0x30...0x39).contains(first) else {
            throw failure(peek() == nil ? "ends where } is missing" : "a key is missing")
        }
        return name
    }

    /// `true`, `false`, `null` or a number.
    private mutating func word() throws(JSON5.Failure) -> JSON5 {
        let start = index
        while let byte = peek(), Self.isWordByte(byte) || [0x2B, 0x2D, 0x2E].contains(byte) { index += 1 }
        let word = String(decoding: bytes[start..<index], as: UTF8.self)
        switch word {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        case "": throw failure("a value is missing")
        default:
            if let number = Self.number(word) { return .number(number) }
            throw failure("\(Suggestion.printable(word)) is no value; texts stand in quotes")
        }
    }

    /// A number as plain decimal text: `+5`, `.5`, `5.` and `0x10` as JSON would write them.
    private static func number(_ word: String) -> String? {
        let negative = word.hasPrefix("-")
        var digits = word[...]
        if negative || word.hasPrefix("+") { digits = digits.dropFirst() }
        if digits.hasPrefix("0x") || digits.hasPrefix("0X") {
            guard digits.dropFirst(2).utf8.first != UInt8(ascii: "+"), digits.dropFirst(2).first != "-",
                let value = Int64(digits.dropFirst(2), radix: 16)
            else { return nil }
            return (negative ? "-" : "") + String(value)
        }
        var parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.allSatisfy({ $0.utf8.allSatisfy(isDigit) }),
            parts.contains(where: { !$0.isEmpty })
        else {
            // An exponent: rare enough to be kept as it is, for the key to refuse.
            return Double(word).map { $0.isFinite && digits.utf8.allSatisfy(isNumberByte) ? word : nil }
                ?? nil
        }
        if parts[0].isEmpty { parts[0] = "0" }
        if parts.count == 2, parts[1].isEmpty { parts.removeLast() }
        if parts[0].count > 1, parts[0].hasPrefix("0") { return nil }
        return (negative ? "-" : "") + parts.joined(separator: ".")
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte)
    }

    private static func isNumberByte(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains(byte)
    }

    private mutating func quoted() throws(JSON5.Failure) -> String {
        let quote = bytes[index]
        index += 1
        var text: [UInt8] = []
        while let byte = peek() {
            index += 1
            switch byte {
            case quote: return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw failure("a text is not closed on its line")
            default: text.append(byte)
            }
        }
        throw failure("ends inside a text")
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSON5.Failure) {
        guard let byte = peek() else { throw failure("ends inside a text") }
        index += 1
        switch byte {
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "v"): text.append(0x0B)
        case 0x0A: line += 1
        case UInt8(ascii: "u"): text += Array(String(try unicode()).utf8)
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "x"):
            throw failure("a text holds an unknown escape")
        default: text.append(byte)
        }
    }

    private mutating func unicode() throws(JSON5.Failure) -> Unicode.Scalar {
        let high = try hexDigits()
        if let scalar = Unicode.Scalar(high) { return scalar }
        guard (0xD800..<0xDC00).contains(high), take("\\"), take("u") else {
            throw failure("half a surrogate pair")
        }
        let low = try hexDigits()
        guard (0xDC00..<0xE000).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
        else { throw failure("half a surrogate pair") }
        return scalar
    }

    private mutating func hexDigits() throws(JSON5.Failure) -> UInt32 {
        let end = index + 4
        guard end <= bytes.count,
            let value = UInt16(String(decoding: bytes[index..<end], as: UTF8.self), radix: 16),
            bytes[index] != UInt8(ascii: "+")
        else { throw failure("\\u needs four hexadecimal digits") }
        index = end
        return UInt32(value)
    }

    private mutating func skipSpace() throws(JSON5.Failure) {
        while let byte = peek() {
            switch byte {
            case 0x0A:
                line += 1
                index += 1
            case 0x09, 0x0B, 0x0C, 0x0D, 0x20: index += 1
            case UInt8(ascii: "/"): try skipComment()
            default: return
            }
        }
    }

    private mutating func skipComment() throws(JSON5.Failure) {
        index += 1
        if take("/") {
            while let byte = peek(), byte != 0x0A { index += 1 }
        } else if take("*") {
            let start = line
            while !(peek() == UInt8(ascii: "*") && index + 1 < bytes.count
                && bytes[index + 1] == UInt8(ascii: "/"))
            {
                guard let byte = peek() else {
                    throw JSON5.Failure(line: start, reason: "a comment is not closed")
                }
                if byte == 0x0A { line += 1 }
                index += 1
            }
            index += 2
        } else {
            throw failure("a lone slash")
        }
    }

    private mutating func run() -> String {
        let start = index
        while let byte = peek(), Self.isWordByte(byte) { index += 1 }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || byte == 0x5F || byte == 0x24 || byte >= 0x80
    }

    private func peek() -> UInt8? {
        index < bytes.count ? bytes[index] : nil
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard peek() == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    private func failure(_ reason: String) -> JSON5.Failure {
        JSON5.Failure(line: line, reason: reason)
    }
}
