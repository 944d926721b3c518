package import AMQP
package import RoomCore

/// An event as the outbox keeps it, so that every copy has the same bytes. Its properties are made of that when it is
/// published.
package struct EncodedEvent: Hashable, Sendable {
    /// Also the routing key.
    package let type: String
    /// `<room>:<sequence>`.
    package let id: String
    package let body: [UInt8]

    package init(type: String, id: String, body: [UInt8]) {
        self.type = type
        self.id = id
        self.body = body
    }
}

/// Events as CloudEvents 1.0 in JSON structured mode (contract, section 4). Equal events and sources make
/// equal bytes.
package enum EventEncoder {
    package static let contentType: ShortString = "application/cloudevents+json"

    // Made once: a literal is an array of its own each time.
    private static let room: ShortString = "room"
    private static let sequence: ShortString = "sequence"
    private static let application: ShortString = "overtime"

    /// `trace` is the trace of the command that led to the event; nil for none.
    package static func encode(_ event: Event, source: String, trace: TraceParent? = nil) -> EncodedEvent {
        let type = EventType(event.kind).rawValue
        let id = "\(event.room.text):\(event.sequence)"
        let body = JSONWriter.object { writer in
            writer.field("specversion", "1.0")
            writer.field("id", id)
            writer.field("source", source)
            writer.field("type", type)
            writer.field("subject", event.room)
            writer.field("time", event.time)
            writer.field("datacontenttype", "application/json")
            writer.field("sequence", String(event.sequence))
            if let trace { writer.field("traceparent", trace.text) }
            writer.field("data") { EventData.write(event, to: &$0) }
        }
        return EncodedEvent(type: type, id: id, body: body)
    }

    /// The properties of a stored event; `seconds` since 1970.
    ///
    /// The id always fits a short string: a room has at most 128 bytes, a sequence 19.
    package static func properties(
        type: String, id: String, room: RoomID, sequence: Int64, seconds: Int64, trace: String? = nil
    ) -> Properties {
        var headers = Table([
            Table.Entry(key: Self.room, value: .text(room.text)),
            Table.Entry(key: Self.sequence, value: .int64(sequence)),
        ])
        if let trace { headers[TraceParent.header] = .text(trace) }
        return Properties(
            contentType: contentType, headers: headers,
            deliveryMode: 2, messageID: ShortString(id),
            timestamp: UInt64(max(seconds, 0)), type: ShortString(type),
            appID: application)
    }
}
