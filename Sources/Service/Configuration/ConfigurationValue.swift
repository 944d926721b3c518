/// How the texts of configuration values are read; each answers nil or false for what is not right.
enum ConfigurationValue {
    static let longestSession: Int64 = 366 * 86_400_000
    static let decade: Int64 = 3650 * 86_400_000

    static func whole(_ text: String, in range: ClosedRange<Int>) -> Int? {
        guard text.utf8.allSatisfy(isDigit), let number = Int(text), range.contains(number) else {
            return nil
        }
        return number
    }

    static func duration(_ text: String, in range: ClosedRange<Int64>) -> Int64? {
        guard let value = DurationText.parse(text), range.contains(value) else { return nil }
        return value
    }

    /// `a, b` as two names; an empty text as none; an empty name between commas is a slip.
    static func list(_ text: String) -> [String]? {
        if text.utf8.allSatisfy({ $0 == 0x20 }) { return [] }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(trimmed)
        return names.contains("") ? nil : names
    }

    /// Short enough for every name made from it (255 bytes), and not the broker's own `amq.`.
    static func isPrefix(_ text: String) -> Bool {
        (1...100).contains(text.utf8.count) && text != "amq" && !text.hasPrefix("amq.")
            && text.utf8.allSatisfy { isDigit($0) || isLetter($0) || [0x2D, 0x2E, 0x5F].contains($0) }
    }

    /// Whether a text is shaped like the URLs of a broker's nodes. Their parts are read where they are used; here only
    /// what is plainly wrong is found, before anything is started.
    static func areBrokerURLs(_ text: String) -> Bool { BrokerURLs.split(text).allSatisfy(isBrokerURL) }

    private static func isBrokerURL(_ text: String) -> Bool {
        let scheme = ["amqp://", "amqps://"].first { text.hasPrefix($0) }
        guard let scheme, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
        let rest = text.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" }
        guard rest.count(where: { $0 == "/" }) <= 1, authority.count(where: { $0 == "@" }) <= 1 else {
            return false
        }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        let afterBracket = host.lastIndex(of: "]").map { host[host.index(after: $0)...] } ?? host
        guard !host.isEmpty else { return false }
        guard let colon = afterBracket.firstIndex(of: ":") else { return true }
        return colon > host.startIndex
            && whole(String(afterBracket[afterBracket.index(after: colon)...]), in: 1...65_535) != nil
    }

    /// Whether a text is shaped like a URL of PostgreSQL; the library that takes it says more.
    static func isPostgresURL(_ text: String) -> Bool {
        let scheme = ["postgresql://", "postgres://"].first { text.hasPrefix($0) }
        guard let scheme, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
        return text.utf8.count > scheme.utf8.count
    }

    static func address(_ text: String) -> Configuration.HTTPAddress? {
        guard let colon = text.lastIndex(of: ":"),
            let port = whole(String(text[text.index(after: colon)...]), in: 1...65_535)
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty,
            host.utf8.allSatisfy({ isDigit($0) || isLetter($0) || [0x2D, 0x2E, 0x3A, 0x5F].contains($0) })
        else { return nil }
        return Configuration.HTTPAddress(host: String(host), port: UInt16(port))
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    static func isPath(_ text: String) -> Bool { !text.isEmpty && !text.utf8.contains(0) }
}
