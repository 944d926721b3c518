/// Bytes for people.
package enum HexText {
    package static func digits(_ bytes: some Sequence<UInt8>) -> String {
        var text = ""
        for byte in bytes {
            text += byte < 16 ? "0" : ""
            text += String(byte, radix: 16)
        }
        return text
    }

    /// Lines of sixteen bytes, with their place and what of them is ASCII.
    package static func dump(_ bytes: [UInt8]) -> [String] {
        stride(from: 0, to: bytes.count, by: 16).map { start in
            let row = bytes[start..<min(start + 16, bytes.count)]
            let place = String(start, radix: 16)
            let digits = row.map { HexText.digits(CollectionOfOne($0)) }.joined(separator: " ")
            let text = String(
                decoding: row.map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: ".") }, as: UTF8.self)
            return String(repeating: "0", count: max(0, 6 - place.count)) + place + "  "
                + digits + String(repeating: " ", count: 49 - digits.count) + text
        }
    }
}
