/// The gate for every JSON document that comes from outside.
///
/// Jansson parses; what it would take too kindly or too deep is refused before it sees a byte. The scan is
/// one loop without recursion, so a million opening brackets cost no stack. Up to the first mistake the scan
/// and Jansson agree on where a string ends, so nothing deeper than the limit ever reaches Jansson's
/// recursion.
package enum StrictJSON {
    /// The largest command: 64 KiB.
    package static let maximumBytes = 65_536
    /// The largest answer a client takes: a full page of rooms with long names is half a megabyte.
    package static let maximumAnswerBytes = 4_194_304
    package static let maximumDepth = 16

    package static func parse(
        _ bytes: [UInt8], maximumBytes: Int = maximumBytes, maximumDepth: Int = maximumDepth
    ) -> Result<JSONValue, JSONProblem> {
        bytes.withUnsafeBytes { parse($0, maximumBytes: maximumBytes, maximumDepth: maximumDepth) }
    }

    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumBytes: Int = maximumBytes, maximumDepth: Int = maximumDepth
    ) -> Result<JSONValue, JSONProblem> {
        if let problem = scan(bytes, maximumBytes: maximumBytes, maximumDepth: maximumDepth) {
            return .failure(problem)
        }
        return JanssonParser.parse(bytes)
    }

    /// What is wrong before any parsing: size, emptiness, a mark, a NUL, the depth.
    private static func scan(
        _ bytes: UnsafeRawBufferPointer, maximumBytes: Int, maximumDepth: Int
    ) -> JSONProblem? {
        guard bytes.count <= maximumBytes else {
            return JSONProblem(
                .tooLarge,
                "the body has \(bytes.count) bytes, more than the \(maximumBytes) allowed: send a smaller one"
            )
        }
        guard !bytes.isEmpty else {
            return JSONProblem(.empty, "the body is empty: send one JSON object in UTF-8")
        }
        guard !bytes.starts(with: [0xEF, 0xBB, 0xBF]) else {
            return JSONProblem(
                .byteOrderMark, "the body begins with a byte-order mark at byte 0: send UTF-8 without one")
        }
        return scanDepth(bytes, maximumDepth: maximumDepth)
    }

    private static func scanDepth(_ bytes: UnsafeRawBufferPointer, maximumDepth: Int) -> JSONProblem? {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for (position, byte) in bytes.enumerated() {
            if byte == 0 {
                return JSONProblem(
                    .nulByte, "the body has a NUL byte at byte \(position): send JSON text in UTF-8")
            }
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""):
                isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > maximumDepth {
                    return JSONProblem(
                        .tooDeep,
                        "the body nests deeper than \(maximumDepth) levels at byte \(position): flatten it")
                }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
            default:
                break
            }
        }
        return nil
    }
}
