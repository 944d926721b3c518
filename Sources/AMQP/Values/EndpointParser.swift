/// Strict reading of AMQP URLs, by the rules of RabbitMQ's URI specification.
///
/// librabbitmq's own parser changes its input and explains nothing. Here every refusal names the part, and none
/// repeats the user information, where the password is.
extension Endpoint {
    package init(url: String) throws(EndpointError) {
        var rest = Substring(url)
        guard let separator = rest.firstRange(of: "://") else { throw .noScheme }
        let scheme = rest[..<separator.lowerBound].lowercased()
        switch scheme {
        case "amqp": isTLS = false
        case "amqps": isTLS = true
        case _ where scheme.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }:
            throw .unknownScheme(scheme)
        default: throw .noScheme
        }
        rest = rest[separator.upperBound...]

        // Before anything is taken apart: in a password they would end the host early, and a part of it would be told.
        guard !rest.contains("?"), !rest.contains("#") else { throw .query }
        let authority = rest.prefix { $0 != "/" }
        let path = rest[authority.endIndex...]
        let at = authority.lastIndex(of: "@")
        (user, password) = try Self.userInformation(at.map { authority[..<$0] })
        let address = at.map { authority[authority.index(after: $0)...] } ?? authority
        (host, port) = try Self.hostAndPort(address, defaultPort: isTLS ? 5671 : 5672)
        virtualHost = try Self.virtualHost(path)
    }

    private static func userInformation(_ part: Substring?) throws(EndpointError) -> (String, Secret) {
        guard let part else { return ("guest", Secret("guest")) }
        // An "@" left over is a password with an unencoded one: which of the two ends it would be a guess.
        guard !part.contains("@") else { throw .forbiddenCharacter(part: "user information") }
        guard let colon = part.firstIndex(of: ":") else {
            return (try decode(part, part: "user"), Secret("guest"))
        }
        let password = part[part.index(after: colon)...]
        guard !password.contains(":") else { throw .forbiddenCharacter(part: "password") }
        return (try decode(part[..<colon], part: "user"), Secret(try decode(password, part: "password")))
    }

    private static func hostAndPort(
        _ part: Substring, defaultPort: UInt16
    ) throws(EndpointError) -> (String, UInt16) {
        let host: String
        var rest: Substring
        if part.first == "[" {
            guard let end = part.firstIndex(of: "]") else { throw .unclosedBracket }
            host = String(part[part.index(after: part.startIndex)..<end])
            rest = part[part.index(after: end)...]
            let allowed = host.utf8.allSatisfy { byte in
                PercentCoding.hexadecimal(byte) != nil || byte == UInt8(ascii: ":")
                    || byte == UInt8(ascii: ".")
            }
            guard host.contains(":"), allowed else { throw .malformedHost(host) }
            guard rest.isEmpty || rest.first == ":" else { throw .malformedPort(String(rest)) }
        } else {
            let name = part.prefix { $0 != ":" }
            rest = part[name.endIndex...]
            guard !name.isEmpty else { throw .emptyHost }
            host = try decode(name, part: "host")
            let allowed = host.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
            guard allowed else { throw .malformedHost(host) }
        }
        rest = rest.dropFirst()
        guard !rest.isEmpty else { return (host, defaultPort) }
        guard rest.utf8.count <= 5, rest.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let port = UInt16(rest),
            port > 0
        else { throw .malformedPort(String(rest)) }
        return (host, port)
    }

    /// No path at all is the default `/`; a path that is only the slash is the virtual host with the empty name.
    private static func virtualHost(_ path: Substring) throws(EndpointError) -> String {
        // A slash in a password ends the host early, too.
        guard !path.contains("@") else { throw .forbiddenCharacter(part: "user information or virtual host") }
        guard !path.isEmpty else { return "/" }
        let name = path.dropFirst()
        guard !name.contains("/") else { throw .tooManySlashes }
        return try decode(name, part: "virtual host")
    }

    private static func decode(_ text: Substring, part: String) throws(EndpointError) -> String {
        guard let bytes = PercentCoding.decode(text) else { throw .malformedPercentEncoding(part: part) }
        guard let decoded = String(validating: bytes, as: UTF8.self) else { throw .notText(part: part) }
        guard !bytes.contains(0), text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw .forbiddenCharacter(part: part)
        }
        guard bytes.count <= ShortString.maximumBytes else { throw .tooLong(part: part) }
        return decoded
    }
}

/// Percent-encoding as in RFC 3986.
enum PercentCoding {
    static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// `nil` if a percent sign is not followed by two hexadecimal digits.
    static func decode(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var iterator = text.utf8.makeIterator()
        while let byte = iterator.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = iterator.next().flatMap(hexadecimal),
                let low = iterator.next().flatMap(hexadecimal)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Everything but letters, digits and `-._~` encoded.
    static func encode(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = Array("0123456789ABCDEF")
                encoded.append("%")
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        return encoded
    }
}
