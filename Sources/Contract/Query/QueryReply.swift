package import RoomCore

/// The answers to queries.
///
/// `next` is the last id of a full page: where the page was the last one all the same, the next question
/// gets an empty page.
package enum QueryReplyEncoder {
    package static func rooms(_ rooms: [LiveRoom], next: RoomID?, serverTime: Instant) -> [UInt8] {
        JSONWriter.object(capacity: 256 + rooms.count * 320) { writer in
            writer.field("ok", true)
            writer.field("rooms", array: rooms) { $1.write(to: &$0) }
            writer.field("next", next)
            writer.field("serverTime", serverTime)
        }
    }

    package static func participants(
        _ participants: [Participant], next: UserID?, serverTime: Instant
    ) -> [UInt8] {
        JSONWriter.object(capacity: 256 + participants.count * 128) { writer in
            writer.field("ok", true)
            writer.field("participants", array: participants) { $1.write(to: &$0) }
            writer.field("next", next)
            writer.field("serverTime", serverTime)
        }
    }

    package static func unknownRoom(_ room: RoomID, serverTime: Instant) -> [UInt8] {
        let quoted = PrintableText.quoted(room.text)
        return refused(Refusal(.unknownRoom, "there is no room \(quoted): send open first"), serverTime)
    }

    package static func malformed(_ problem: QueryProblem, serverTime: Instant) -> [UInt8] {
        refused(Refusal(.invalidCommand, problem.detail), serverTime)
    }

    private static func refused(_ refusal: Refusal, _ serverTime: Instant) -> [UInt8] {
        JSONWriter.object { writer in
            ReplyEncoder.write(refusal, to: &writer)
            writer.field("serverTime", serverTime)
        }
    }
}

/// One page of an answer, as a client reads it.
package struct QueryPage<Row: Sendable, Cursor: Sendable>: Sendable {
    package let rows: [Row]
    /// What to ask for next; nil after the last page.
    package let next: Cursor?
    package let serverTime: Instant

    package init(rows: [Row], next: Cursor?, serverTime: Instant) {
        self.rows = rows
        self.next = next
        self.serverTime = serverTime
    }
}

package enum QueryReplyDecoder {
    /// Why there is no page.
    package enum Problem: Error, Hashable, Sendable {
        case refused(Reply.Failure)
        /// No answer of ours, or one of another version.
        case unreadable
    }

    package static func rooms(_ body: [UInt8]) -> Result<QueryPage<LiveRoom, RoomID>, Problem> {
        page(body, "rooms", LiveRoom.init(_:))
    }

    package static func participants(_ body: [UInt8]) -> Result<QueryPage<Participant, UserID>, Problem> {
        page(body, "participants", Participant.init(_:))
    }

    private static func page<Row, Kind>(
        _ body: [UInt8], _ field: String, _ row: (JSONValue) -> Row?
    ) -> Result<QueryPage<Row, Identifier<Kind>>, Problem> {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes)
        else { return .failure(.unreadable) }
        if whole["ok"]?.bool == false, let failure = ReplyDecoder.failure(whole) {
            return .failure(.refused(failure))
        }
        guard whole["ok"]?.bool == true, let values = whole[field]?.array,
            let serverTime = whole["serverTime"]?.instant
        else { return .failure(.unreadable) }
        var rows: [Row] = []
        rows.reserveCapacity(values.count)
        for value in values {
            guard let row = row(value) else { return .failure(.unreadable) }
            rows.append(row)
        }
        return .success(
            QueryPage(
                rows: rows, next: whole["next"]?.string.map(Identifier.init(_:)), serverTime: serverTime))
    }
}
