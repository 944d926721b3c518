package import AMQP
internal import RoomCore

/// A dead letter as JSON for programs. Control characters are escaped in every string, so that nothing that a stranger
/// sent steers a terminal.
package enum LetterEncoder {
    /// One line of a list.
    package static func encode(_ letter: Letter, id: LetterID) -> [UInt8] {
        JSONWriter.object { summary(letter, id: id, to: &$0) }
    }

    /// Everything, the body included: as text where it is UTF-8, else in hexadecimal digits.
    package static func encodeWhole(_ letter: Letter, id: LetterID) -> [UInt8] {
        JSONWriter.object(capacity: 2_048) { writer in
            summary(letter, id: id, to: &writer)
            writer.field("properties") { writer in
                for (name, value) in letter.properties.named { writer.field(dynamic: name, value) }
            }
            writer.key("headers")
            if letter.properties.headersTooDeep {
                writer.null()
            } else {
                writer.table(letter.properties.headers ?? Table())
            }
            guard case .bytes(let bytes) = letter.body else { return writer.field("body", nil as String?) }
            writer.field(dynamic: "body", .string(bytes))
        }
    }

    /// What became of a letter.
    package static func encode(_ id: LetterID, outcome: String, leftOut: [String]) -> [UInt8] {
        JSONWriter.object { writer in
            writer.safe("id", id.text)
            writer.safe("outcome", outcome)
            writer.field("leftOut", array: leftOut) { $0.raw(PrintableText.quotedJSON($1)) }
        }
    }

    /// One value of a header or a property, on one line.
    package static func text(_ value: FieldValue) -> String {
        String(decoding: JSONWriter.bytes { $0.value(value) }, as: UTF8.self)
    }

    private static func summary(_ letter: Letter, id: LetterID, to writer: inout JSONWriter) {
        let echo = letter.echo
        writer.safe("id", id.text)
        writer.field("time", letter.time)
        writer.safe("reason", letter.reason)
        writer.safe("detail", letter.detail)
        writer.safe("exchange", letter.origin?.exchange)
        writer.safe("queue", letter.origin?.queue)
        writer.safe("routingKey", letter.routingKey.string)
        writer.safe("room", echo.room?.text)
        writer.safe("command", echo.command?.rawValue)
        writer.safe("key", echo.key?.text)
        writer.field("size", Int64(clamping: letter.size))
    }
}

extension Properties {
    /// Those that there are, apart from the headers, by their names in AMQP.
    package var named: [(name: String, value: FieldValue)] {
        let texts: [(String, ShortString?)] = [
            ("content_type", contentType), ("content_encoding", contentEncoding),
            ("correlation_id", correlationID), ("reply_to", replyTo), ("expiration", expiration),
            ("message_id", messageID), ("type", type), ("user_id", userID), ("app_id", appID),
            ("cluster_id", clusterID),
        ]
        let numbers: [(String, FieldValue?)] = [
            ("delivery_mode", deliveryMode.map { .uint8($0) }), ("priority", priority.map { .uint8($0) }),
            ("timestamp", timestamp.map { .timestamp($0) }),
        ]
        return texts.compactMap { name, text in text.map { (name, .string($0.bytes)) } }
            + numbers.compactMap { name, value in value.map { (name, $0) } }
    }
}

extension JSONWriter {
    fileprivate mutating func safe(_ name: StaticString, _ text: String?) {
        key(name)
        if let text { raw(PrintableText.quotedJSON(text)) } else { null() }
    }

    fileprivate mutating func field(dynamic name: String, _ value: FieldValue) {
        key(quoted: PrintableText.quotedJSON(name))
        self.value(value)
    }

    /// Doubled names stay doubled: this is what the message has.
    fileprivate mutating func table(_ table: Table) {
        object { writer in
            for entry in table.entries {
                writer.field(dynamic: String(decoding: entry.key.bytes, as: UTF8.self), entry.value)
            }
        }
    }

    fileprivate mutating func value(_ value: FieldValue) {
        switch value {
        case .bool(let flag): raw(flag ? "true" : "false")
        case .string(let bytes):
            if let text = String(validating: bytes, as: UTF8.self) {
                raw(PrintableText.quotedJSON(text))
            } else {
                hexadecimal(bytes)
            }
        case .bytes(let bytes): hexadecimal(bytes)
        case .array(let values): array(values) { $0.value($1) }
        case .table(let table): self.table(table)
        case .void: null()
        case .timestamp(let number), .uint64(let number): raw(String(number))
        case .float(let number) where number.isFinite: raw(number.description)
        case .double(let number) where number.isFinite: raw(number.description)
        default: if let number = value.integer { integer(number) } else { string("\(value)") }
        }
    }

    private mutating func hexadecimal(_ bytes: [UInt8]) {
        object { $0.field("hex", HexText.digits(bytes)) }
    }
}
