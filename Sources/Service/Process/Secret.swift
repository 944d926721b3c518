/// Text that must not be seen in logs, errors or dumps, such as a URL with a password.
///
/// Every way Swift has of printing a value is answered with the same word; only `reveal` gives the text.
package struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    private let text: String

    package init(_ text: String) {
        self.text = text
    }

    /// The text itself, for the one call that needs it.
    package func reveal() -> String {
        text
    }

    package var description: String { "(secret)" }
    package var debugDescription: String { "(secret)" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// The URL, or several, without user and password, for lines that say which broker is meant.
    package var withoutCredentials: String {
        BrokerURLs.split(text).map { Secret($0).oneWithoutCredentials }.joined(separator: ",")
    }

    private var oneWithoutCredentials: String {
        guard let scheme = text.firstRange(of: "://") else { return description }
        let rest = text[scheme.upperBound...]
        // The last @ in the whole rest, not in the authority: an unescaped / or @ in a password must not show its tail.
        let host = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        return String(text[..<scheme.upperBound] + host.prefix { $0 != "?" })
    }
}

extension StringProtocol {
    /// Where a piece of text stands first; the standard library has it only in its regex module.
    fileprivate func firstRange(of piece: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(piece) {
                return start..<index(start, offsetBy: piece.count)
            }
            start = index(after: start)
        }
        return nil
    }
}
