/// Where a broker is and who we are to it.
package struct Endpoint: Hashable, Sendable {
    package var isTLS: Bool
    /// A name or an address, without brackets.
    package var host: String
    package var port: UInt16
    package var user: String
    package var password: Secret
    package var virtualHost: String

    package init(
        isTLS: Bool, host: String, port: UInt16, user: String, password: Secret, virtualHost: String
    ) {
        self.isTLS = isTLS
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.virtualHost = virtualHost
    }
}

extension Endpoint {
    /// Host and port, which tell the nodes of a cluster apart.
    package var address: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(PercentCoding.encode(host)):\(port)"
    }
}

extension Endpoint: CustomStringConvertible, CustomDebugStringConvertible {
    /// Safe to log: the password is left out, and everything else is percent-encoded to stay one line.
    package var description: String {
        let scheme = isTLS ? "amqps" : "amqp"
        let path = PercentCoding.encode(virtualHost)
        return "\(scheme)://\(PercentCoding.encode(user)):\(password)@\(address)/\(path)"
    }

    package var debugDescription: String { description }
}

/// What is wrong with an AMQP URL. No case carries the password.
package enum EndpointError: Error, Hashable, Sendable {
    case noScheme
    case unknownScheme(String)
    case emptyHost
    case malformedHost(String)
    case unclosedBracket
    case malformedPort(String)
    case malformedPercentEncoding(part: String)
    case notText(part: String)
    case forbiddenCharacter(part: String)
    case tooLong(part: String)
    case tooManySlashes
    case query
    /// Of several URLs.
    case differing(part: String)
}

extension EndpointError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noScheme: "the AMQP URL has no scheme; it must start with amqp:// or amqps://"
        case .unknownScheme(let scheme):
            "the scheme '\(SafeText.oneLine(scheme.utf8))' of the AMQP URL is unknown; use amqp or amqps"
        case .emptyHost: "the AMQP URL names no host; write amqp://host or amqp://user:password@host"
        case .malformedHost(let host):
            "'\(SafeText.oneLine(host.utf8))' is no host name or address; an IPv6 address goes in brackets, [::1]"
        case .unclosedBracket: "the IPv6 address in the AMQP URL lacks its closing bracket ]"
        case .malformedPort(let port):
            "the port '\(SafeText.oneLine(port.utf8))' of the AMQP URL is no number from 1 to 65535"
        case .malformedPercentEncoding(let part):
            "the \(part) of the AMQP URL has a % without two hexadecimal digits; write a percent sign as %25"
        case .notText(let part): "the \(part) of the AMQP URL is not UTF-8 once decoded"
        case .forbiddenCharacter(let part):
            "the \(part) of the AMQP URL has a character that must be percent-encoded, or a NUL"
        case .tooLong(let part): "the \(part) of the AMQP URL is longer than 255 bytes"
        case .tooManySlashes:
            "the virtual host of the AMQP URL has an unencoded slash; write it as %2F (the default one is %2F)"
        case .differing(let part):
            "the AMQP URLs name more than one \(part); give the nodes of one cluster, as one user"
        case .query:
            "the AMQP URL has a query or fragment; options are configuration keys, and ? is %3F, # is %23"
        }
    }
}
