internal import RoomCore

/// What may be a room, a user or a key on the wire. Everything behind the decoder relies on it: names fit an
/// AMQP short string with room to spare, a database takes them, and a line of a log stays one line.
enum NameRule {
    static let maximumBytes = 128

    /// A room or a user.
    static func name<Kind>(_ text: String, called field: String) throws(FieldProblem) -> Identifier<Kind> {
        try checkLength(text, called: field)
        guard !text.unicodeScalars.contains(where: PrintableText.isControl) else {
            throw FieldProblem(
                "\(field) must not contain control characters (U+0000 to U+001F, U+007F to U+009F)")
        }
        return Identifier(text)
    }

    /// An idempotency key: anything but NUL.
    static func key(_ text: String, called field: String) throws(FieldProblem) -> CommandID {
        try checkLength(text, called: field)
        guard !text.utf8.contains(0) else { throw FieldProblem("\(field) must not contain NUL") }
        return CommandID(text)
    }

    private static func checkLength(_ text: String, called field: String) throws(FieldProblem) {
        let count = text.utf8.count
        guard (1...maximumBytes).contains(count) else {
            throw FieldProblem("\(field) must have 1 to \(maximumBytes) bytes of UTF-8, not \(count)")
        }
    }
}
