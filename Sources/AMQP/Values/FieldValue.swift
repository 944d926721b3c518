/// A value in an AMQP table, one case for each type that librabbitmq reads and writes.
///
/// Nothing is widened or normalised: a dead letter is published again with its headers, and its readers (and the
/// broker's own `x-death`) look at the types.
package indirect enum FieldValue: Hashable, Sendable {
    case bool(Bool)
    case int8(Int8)
    case uint8(UInt8)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    /// RabbitMQ has no such type and closes the connection that sends one.
    case uint64(UInt64)
    case float(Float)
    case double(Double)
    case decimal(scale: UInt8, value: UInt32)
    /// A long string (`S`): meant to be UTF-8, but only bytes on the wire.
    case string([UInt8])
    /// A byte array (`x`).
    case bytes([UInt8])
    case array([FieldValue])
    /// Seconds since 1970.
    case timestamp(UInt64)
    case table(Table)
    case void

    package static func text(_ text: String) -> FieldValue { .string(Array(text.utf8)) }

    /// The text of a long string, if it is one and valid UTF-8.
    package var text: String? {
        guard case .string(let bytes) = self else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// The value of any integer type that fits, since clients choose the width as they like.
    package var integer: Int64? {
        switch self {
        case .int8(let value): Int64(value)
        case .uint8(let value): Int64(value)
        case .int16(let value): Int64(value)
        case .uint16(let value): Int64(value)
        case .int32(let value): Int64(value)
        case .uint32(let value): Int64(value)
        case .int64(let value): value
        case .uint64(let value): Int64(exactly: value)
        default: nil
        }
    }
}

/// An AMQP table: an ordered list, because order and even doubled keys survive a republish.
package struct Table: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package var key: ShortString
        package var value: FieldValue

        package init(key: ShortString, value: FieldValue) {
            self.key = key
            self.value = value
        }
    }

    package var entries: [Entry]

    package init(_ entries: [Entry] = []) {
        self.entries = entries
    }

    package var isEmpty: Bool { entries.isEmpty }

    /// The first entry of that name; setting replaces it, or appends, or with `nil` removes all of that name.
    package subscript(key: ShortString) -> FieldValue? {
        get { entries.first { $0.key == key }?.value }
        set {
            guard let newValue else {
                entries.removeAll { $0.key == key }
                return
            }
            if let index = entries.firstIndex(where: { $0.key == key }) {
                entries[index].value = newValue
            } else {
                entries.append(Entry(key: key, value: newValue))
            }
        }
    }
}

extension Table: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (ShortString, FieldValue)...) {
        self.init(elements.map { Entry(key: $0.0, value: $0.1) })
    }
}

extension FieldValue {
    /// How deep tables and arrays may nest. Deeper ones are legal on the wire and a way to exhaust a stack.
    static let maximumDepth = 64
}
