package import AMQP

/// The properties of a message that goes to the dead letters: as they came, except for what would make the
/// broker refuse, delete or copy the letter, which moves to headers of our own (contract, section 3).
package enum DeadLetter {
    package static let reasonHeader: ShortString = "x-overtime-reason"
    package static let detailHeader: ShortString = "x-overtime-detail"
    package static let userIDHeader: ShortString = "x-overtime-original-user-id"
    package static let expirationHeader: ShortString = "x-overtime-original-expiration"
    package static let ccHeader: ShortString = "x-overtime-original-cc"
    package static let bccHeader: ShortString = "x-overtime-original-bcc"
    /// Set where the headers could not be taken over: says why.
    package static let droppedHeader: ShortString = "x-overtime-dropped-headers"

    /// The most that the original's headers may take. A header frame larger than what was negotiated
    /// (131,072 bytes by default) closes the connection, and with it everybody's messages.
    package static let maximumHeaderBytes = 120_000

    package static func properties(
        original: Properties, reason: String, detail: String, headerLimit: Int = maximumHeaderBytes
    ) -> Properties {
        var properties = original
        var headers = Table((original.headers?.entries ?? []).map(renamed))
        if let dropped = dropReason(original, headers, headerLimit) {
            headers = [droppedHeader: .text(dropped)]
        }
        headers[userIDHeader] = original.userID.map { .string($0.bytes) } ?? headers[userIDHeader]
        headers[expirationHeader] = original.expiration.map { .string($0.bytes) } ?? headers[expirationHeader]
        headers[reasonHeader] = .text(PrintableText.bounded(reason, to: 64))
        headers[detailHeader] = .text(PrintableText.bounded(detail))
        properties.headers = headers
        properties.headersTooDeep = false
        properties.userID = nil
        properties.expiration = nil
        properties.deliveryMode = 2
        return properties
    }

    private static func dropReason(_ original: Properties, _ headers: Table, _ limit: Int) -> String? {
        if original.headersTooDeep { return "nested too deep" }
        let size = WireSize.bytes(headers)
        return size > limit ? "too large: \(size) bytes" : nil
    }

    private static func renamed(_ entry: Table.Entry) -> Table.Entry {
        var entry = entry
        if entry.key == "CC" { entry.key = ccHeader }
        if entry.key == "BCC" { entry.key = bccHeader }
        entry.value = publishable(entry.value)
        return entry
    }

    /// RabbitMQ knows no unsigned 64-bit integers and closes the connection that sends one.
    private static func publishable(_ value: FieldValue) -> FieldValue {
        switch value {
        case .uint64(let number): Int64(exactly: number).map(FieldValue.int64) ?? .text(String(number))
        case .array(let values): .array(values.map(publishable))
        case .table(let table):
            .table(Table(table.entries.map { Table.Entry(key: $0.key, value: publishable($0.value)) }))
        default: value
        }
    }
}

/// What tables take on the wire, by the AMQP 0-9-1 grammar. Depth is bounded by the AMQP target.
enum WireSize {
    static func bytes(_ table: Table) -> Int {
        table.entries.reduce(4) { $0 + 1 + $1.key.bytes.count + bytes($1.value) }
    }

    /// A value with its type letter.
    private static func bytes(_ value: FieldValue) -> Int {
        switch value {
        case .bool, .int8, .uint8: 2
        case .int16, .uint16: 3
        case .int32, .uint32, .float: 5
        case .decimal: 6
        case .int64, .uint64, .double, .timestamp: 9
        case .string(let bytes), .bytes(let bytes): 5 + bytes.count
        case .array(let values): values.reduce(5) { $0 + bytes($1) }
        case .table(let table): 1 + bytes(table)
        case .void: 1
        }
    }
}
