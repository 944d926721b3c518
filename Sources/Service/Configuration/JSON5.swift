/// A configuration file's content: JSON with comments, unquoted names, single quotes and trailing commas (JSON5).
///
/// Read here and not with Foundation's decoder, which takes duplicate keys without a word, says "not valid JSON"
/// without a line, and costs a service megabytes of memory for one small file.
enum JSON5: Sendable, Equatable {
    struct Member: Sendable, Equatable {
        let name: String
        let line: Int
        let value: JSON5
    }

    struct Failure: Error, Sendable, Equatable {
        let line: Int
        let reason: String
    }

    case object([Member])
    case array([JSON5])
    case string(String)
    /// The number's decimal text: what it means is for the key to say.
    case number(String)
    case bool(Bool)
    case null

    /// What the value is, in words for an error.
    var kind: String {
        switch self {
        case .object: "an object"
        case .array: "a list"
        case .string(let text): "the text \"\(Suggestion.printable(text))\""
        case .number(let text): "the number \(Suggestion.printable(text))"
        case .bool(let flag): flag ? "true" : "false"
        case .null: "null"
        }
    }

    static func parse(_ bytes: [UInt8]) throws(Failure) -> JSON5 {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw Failure(line: 1, reason: "is not UTF-8")
        }
        var reader = JSON5Reader(bytes: bytes)
        return try reader.document()
    }
}
