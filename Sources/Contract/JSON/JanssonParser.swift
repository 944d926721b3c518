internal import CJansson

/// Jansson, told to be strict: duplicate keys (after unescaping), `\u0000`, lone surrogates, invalid UTF-8,
/// trailing bytes and numbers that do not fit are errors. Any top-level value parses; that a command is an
/// object is the decoder's to say.
///
/// Expects bytes whose depth was checked: both Jansson and the copy below recurse.
enum JanssonParser {
    static func parse(_ bytes: UnsafeRawBufferPointer) -> Result<JSONValue, JSONProblem> {
        var error = json_error_t()
        let flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY
        let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        guard let root = json_loadb(start, bytes.count, Int(flags), &error) else {
            return .failure(problem(error))
        }
        defer { json_decref(root) }
        guard let value = value(root) else {
            return .failure(JSONProblem(.malformed, "the body could not be read: send one JSON object"))
        }
        return .success(value)
    }

    /// A copy of Jansson's tree; nil where it is not as documented.
    private static func value(_ node: UnsafeMutablePointer<json_t>) -> JSONValue? {
        switch node.pointee.type {
        case JSON_OBJECT: return members(node).map(JSONValue.object)
        case JSON_ARRAY: return elements(node).map(JSONValue.array)
        case JSON_STRING: return text(json_string_value(node), json_string_length(node)).map(JSONValue.string)
        case JSON_INTEGER: return .integer(Int64(json_integer_value(node)))
        case JSON_REAL: return .real(json_real_value(node))
        case JSON_TRUE: return .bool(true)
        case JSON_FALSE: return .bool(false)
        case JSON_NULL: return .null
        default: return nil
        }
    }

    private static func members(_ node: UnsafeMutablePointer<json_t>) -> [JSONMember]? {
        var members: [JSONMember] = []
        members.reserveCapacity(json_object_size(node))
        var position = json_object_iter(node)
        while let current = position {
            guard let key = text(json_object_iter_key(current), json_object_iter_key_len(current)),
                let child = json_object_iter_value(current), let value = value(child)
            else { return nil }
            members.append(JSONMember(key, value))
            position = json_object_iter_next(node, current)
        }
        return members
    }

    private static func elements(_ node: UnsafeMutablePointer<json_t>) -> [JSONValue]? {
        let count = json_array_size(node)
        var elements: [JSONValue] = []
        elements.reserveCapacity(count)
        for index in 0..<count {
            guard let child = json_array_get(node, index), let value = value(child) else { return nil }
            elements.append(value)
        }
        return elements
    }

    /// Jansson has checked that these bytes are UTF-8.
    private static func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String? {
        guard let start else { return nil }
        return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Jansson's words without the piece of the body that it quotes ("… near '…'").
    private static func problem(_ error: json_error_t) -> JSONProblem {
        let (words, code) = withUnsafeBytes(of: error.text) { text in
            (String(decoding: text.prefix { $0 != 0 }, as: UTF8.self), UInt32(text.last ?? 0))
        }
        let place = "at line \(error.line), column \(error.column) (byte \(error.position))"
        switch json_error_code(rawValue: code) {
        case json_error_duplicate_key:
            return JSONProblem(.duplicateKey, "the body has the same key twice \(place): give each key once")
        case json_error_invalid_utf8:
            return JSONProblem(.invalidText, "the body is not valid UTF-8 \(place): send UTF-8")
        case json_error_null_character, json_error_null_byte_in_key:
            return JSONProblem(
                .invalidText, "the body has the character NUL (\\u0000) \(place): leave it out")
        case json_error_numeric_overflow:
            return JSONProblem(
                .numberOutOfRange,
                "the body has a number that does not fit 64 bits \(place): send a smaller one")
        case json_error_premature_end_of_input:
            return JSONProblem(.malformed, "the body ends too early \(place): send one whole JSON object")
        case json_error_end_of_input_expected:
            return JSONProblem(
                .malformed, "the body goes on after its JSON \(place): send one JSON object only")
        default:
            let said = words.split(separator: " near ", maxSplits: 1).first.map(String.init) ?? words
            return JSONProblem(
                .malformed, "the body is not valid JSON \(place): \(said); send one JSON object in UTF-8")
        }
    }
}
