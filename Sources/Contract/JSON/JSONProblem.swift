/// Why bytes are not the JSON that Overtime takes: a kind for programs, a sentence for people.
///
/// The sentence never quotes the body: it ends up in logs, headers and answers.
package struct JSONProblem: Error, Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case tooLarge, empty, byteOrderMark, nulByte, tooDeep, malformed, invalidText, duplicateKey
        case numberOutOfRange
    }

    package let kind: Kind
    /// Names the position and the remedy.
    package let detail: String

    package init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = PrintableText.bounded(detail)
    }
}
