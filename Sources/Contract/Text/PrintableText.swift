/// Text that may go into a header, an answer or a log line: bounded, and without control characters.
///
/// A detail quotes what a stranger sent; unbounded it would close the connection that carries it as a
/// header, unfiltered it would write lines of its own into a log.
package enum PrintableText {
    /// The longest detail, in UTF-8 bytes.
    package static let maximumBytes = 512

    /// The text with `?` for each control character, cut after whole characters to at most `limit` bytes.
    package static func bounded(_ text: String, to limit: Int = maximumBytes) -> String {
        if text.utf8.count <= limit, !text.unicodeScalars.contains(where: isControl) { return text }
        let mark = "…"
        var printable = ""
        var size = 0
        for scalar in text.unicodeScalars {
            let next = isControl(scalar) ? "?" : scalar
            let width = UTF8.width(next)
            guard size + width + mark.utf8.count <= limit else { return printable + mark }
            printable.unicodeScalars.append(next)
            size += width
        }
        return printable
    }

    /// Something that was sent, short enough to stand inside a sentence.
    package static func quoted(_ text: String) -> String { "\"\(bounded(text, to: 48))\"" }

    /// U+0000–U+001F and U+007F–U+009F, as in the contract.
    package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
    }
}
