/// The URLs of the nodes of one broker in one text, separated by commas.
package enum BrokerURLs {
    /// A comma separates only where another URL follows, since a password may have one of its own.
    package static func split(_ text: String) -> [String] {
        var urls: [String] = []
        var start = text.startIndex
        for comma in text.indices where text[comma] == "," {
            let rest = text[text.index(after: comma)...].prefix(8).lowercased()
            guard rest.hasPrefix("amqp://") || rest.hasPrefix("amqps://") else { continue }
            urls.append(String(text[start..<comma]))
            start = text.index(after: comma)
        }
        return urls + [String(text[start...])]
    }
}
