/// A name that came from outside, equal only byte by byte.
///
/// Swift's `String` calls two spellings of "é" equal; a database, a broker and every other language do
/// not. Two rooms must never become one in memory and stay two on disk, so identifiers compare, hash and
/// sort by their UTF-8 bytes.
package struct Identifier<Kind>: Sendable {
    package let text: String

    /// Takes any text: what may be an identifier on the wire is the contract's to check.
    package init(_ text: String) { self.text = text }
}

/// Names of the kinds of identifiers; they have no values.
package enum RoomName {}
package enum UserName {}
package enum CommandName {}

package typealias RoomID = Identifier<RoomName>
package typealias UserID = Identifier<UserName>
/// The idempotency key of a command, unique within its room.
package typealias CommandID = Identifier<CommandName>

extension Identifier: Hashable {
    /// Compares memory where both have it in one piece, as Swift's own strings do: this runs several times a command.
    package static func == (left: Self, right: Self) -> Bool {
        let (left, right) = (left.text.utf8, right.text.utf8)
        guard left.count == right.count else { return false }
        let isEqual = left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { right in
                haveEqualBytes(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer(right))
            }
        }
        return isEqual.flatMap { $0 } ?? left.elementsEqual(right)
    }

    /// Eight bytes at a time; both are of one length.
    private static func haveEqualBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer)
        -> Bool
    {
        var at = 0
        while at + 8 <= left.count {
            let (a, b) = (
                left.loadUnaligned(fromByteOffset: at, as: UInt64.self),
                right.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            )
            if a != b { return false }
            at += 8
        }
        while at < left.count {
            if left[at] != right[at] { return false }
            at += 1
        }
        return true
    }

    package func hash(into hasher: inout Hasher) {
        let hashed: Void? = text.utf8.withContiguousStorageIfAvailable { bytes in
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
        if hashed == nil { for byte in text.utf8 { hasher.combine(byte) } }
        hasher.combine(0xFF as UInt8)
    }
}

extension Identifier: Comparable {
    package static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }
}

extension Identifier: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}

extension Identifier: CustomStringConvertible {
    package var description: String { text }
}

extension Identifier: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
