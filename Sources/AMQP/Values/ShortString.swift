/// An AMQP short string: at most 255 bytes of anything.
///
/// Names and properties from the broker are bytes that some publisher chose. Turning them into a `String` would
/// repair invalid UTF-8 silently, and a repaired name is another name.
package struct ShortString: Hashable, Sendable {
    package static let maximumBytes = 255

    package let bytes: [UInt8]

    /// `nil` if the text needs more than 255 bytes.
    package init?(_ text: String) {
        self.init(bytes: Array(text.utf8))
    }

    /// `nil` if there are more than 255 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count <= Self.maximumBytes else { return nil }
        self.bytes = bytes
    }

    /// For bytes that came from the wire, whose length byte has already bounded them.
    init(wire bytes: [UInt8]) {
        self.bytes = bytes.count <= Self.maximumBytes ? bytes : Array(bytes.prefix(Self.maximumBytes))
    }

    /// The text, or `nil` if the bytes are not valid UTF-8.
    package var string: String? { String(validating: bytes, as: UTF8.self) }

    package var isEmpty: Bool { bytes.isEmpty }

    package static let empty = ShortString(wire: [])
}

extension ShortString: ExpressibleByStringLiteral {
    /// A literal is our own text: one over 255 bytes is a mistake in the program and stops it.
    package init(stringLiteral value: String) {
        let bytes = Array(value.utf8)
        precondition(bytes.count <= Self.maximumBytes, "a short string literal holds at most 255 bytes")
        self.bytes = bytes
    }
}

extension ShortString: CustomStringConvertible {
    /// For people: control characters and invalid bytes are replaced, so one line stays one line.
    package var description: String { SafeText.oneLine(bytes) }
}

/// Text from outside, made fit for one line of a log.
enum SafeText {
    static let maximumBytes = 512

    static func oneLine(_ bytes: some Collection<UInt8>) -> String {
        var text = ""
        for scalar in String(decoding: bytes.prefix(maximumBytes), as: UTF8.self).unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: text.unicodeScalars.append(" ")
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
