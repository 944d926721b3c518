/// A JSON document as values: what the strict parser hands to the decoders.
///
/// An object keeps its fields in the order in which they came, so that the first wrong one is the one
/// that is named. Integers and reals stay apart: `2.0` is no count.
package indirect enum JSONValue: Equatable, Sendable {
    case object([JSONMember])
    case array([JSONValue])
    case string(String)
    case integer(Int64)
    case real(Double)
    case bool(Bool)
    case null

    /// How a sentence calls a value of this type.
    package var typeName: String {
        switch self {
        case .object: "an object"
        case .array: "an array"
        case .string: "a string"
        case .integer: "an integer"
        case .real: "a number with a fraction or an exponent"
        case .bool: "true or false"
        case .null: "null"
        }
    }

    /// The field of an object; nil where it is absent or this is no object.
    package subscript(_ key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.isNamed(key) }?.value
    }

    package var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    package var integer: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    package var bool: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    package var array: [JSONValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    package var isNull: Bool {
        if case .null = self { true } else { false }
    }
}

/// One field of an object.
package struct JSONMember: Equatable, Sendable {
    package let key: String
    package let value: JSONValue

    package init(_ key: String, _ value: JSONValue) {
        self.key = key
        self.value = value
    }

    /// Whether this is the field of that name, which is one of ours and ASCII.
    ///
    /// Swift's `==` is quick but also calls a Kelvin sign and a `K` equal; such a stranger has more bytes.
    package func isNamed(_ name: String) -> Bool {
        key == name && key.utf8.count == name.utf8.count
    }
}
