package import RoomCore

/// A message to publish: encoded bytes and what its AMQP properties are rebuilt from.
///
/// A republish never encodes anew, so copies are identical even across an upgrade; `format` tells a newer
/// program by which rules the properties were meant. A reference to what never changes, since it is handed from the
/// decision to the store and to the publisher.
package final class OutboxDraft: Sendable {
    /// The rules by which this program makes properties of the fields below.
    package static let currentFormat: Int64 = 1

    package let room: RoomID
    package let sequence: Int64
    /// The AMQP `type`, also the routing key.
    package let type: String
    package let messageID: String
    /// Seconds since 1970, as AMQP counts.
    package let timestamp: Int64
    package let body: [UInt8]
    /// The header `traceparent`; nil for none.
    package let trace: String?
    package let format: Int64

    package init(
        room: RoomID, sequence: Int64, type: String, messageID: String, timestamp: Int64, body: [UInt8],
        trace: String? = nil, format: Int64 = OutboxDraft.currentFormat
    ) {
        self.room = room
        self.sequence = sequence
        self.type = type
        self.messageID = messageID
        self.timestamp = timestamp
        self.body = body
        self.trace = trace
        self.format = format
    }
}

extension OutboxDraft: Hashable {
    package static func == (left: OutboxDraft, right: OutboxDraft) -> Bool {
        left.sequence == right.sequence && left.room == right.room && left.type == right.type
            && left.messageID == right.messageID && left.timestamp == right.timestamp
            && left.trace == right.trace && left.format == right.format && left.body == right.body
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(room)
        hasher.combine(sequence)
    }
}

/// A draft at its place in the outbox. Positions only grow and are never given twice.
package struct OutboxMessage: Hashable, Sendable {
    package let position: Int64
    package let draft: OutboxDraft

    package init(position: Int64, draft: OutboxDraft) {
        self.position = position
        self.draft = draft
    }
}
