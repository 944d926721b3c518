package import AMQP

/// Where a message stands in somebody's trace: the value of the header `traceparent` (W3C Trace Context, version 00).
///
/// It is carried on as it came: Overtime records no spans of its own, so the sender's span stays the parent of whoever
/// reads the events.
package struct TraceParent: Hashable, Sendable {
    package static let header: ShortString = "traceparent"

    /// `00-<trace id>-<parent id>-<flags>`, lower-case hexadecimal.
    package let text: String

    /// The 32 digits that all messages of one trace share.
    package var traceID: Substring { text.dropFirst(3).prefix(32) }

    /// Nil for everything that is no valid value: then there is no trace, as the document asks.
    package init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [2, 32, 16, 2], text.hasPrefix("00"),
            parts.allSatisfy({ $0.allSatisfy(Self.isDigit) }),
            !parts[1...2].contains(where: { $0.allSatisfy { $0 == UInt8(ascii: "0") } })
        else { return nil }
        self.text = text
    }

    /// Of a message's properties; nil where there is none or none that is valid.
    package init?(_ properties: Properties) {
        guard case .string(let bytes)? = properties.headers?[Self.header],
            let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        self.init(text)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}
