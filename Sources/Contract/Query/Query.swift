package import RoomCore

/// A read-only question (contract, section 3, Queries).
package enum Query: Hashable, Sendable {
    /// The rooms with a waiting or running session, after this one, in byte order.
    case rooms(after: RoomID?, limit: Int)
    /// Who is connected, after this user, in byte order.
    case participants(room: RoomID, after: UserID?, limit: Int)
    /// How a worker is; internal, for `overtime check`.
    case state

    package static let limits = 1...1_000
    package static let defaultLimit = 500
}

package struct QueryProblem: Error, Hashable, Sendable {
    package let detail: String

    package init(detail: String) { self.detail = PrintableText.bounded(detail) }
}

package enum QueryDecoder {
    package static func decode(_ body: [UInt8]) -> Result<Query, QueryProblem> {
        switch StrictJSON.parse(body) {
        case .failure(let problem): return .failure(QueryProblem(detail: problem.detail))
        case .success(.object(let members)):
            do {
                return .success(try query(FieldReader(members)))
            } catch {
                return .failure(QueryProblem(detail: error.detail))
            }
        case .success(let value):
            return .failure(
                QueryProblem(detail: "the body must be one JSON object, not \(value.typeName)"))
        }
    }

    private enum Kind: String, CaseIterable {
        case rooms, participants, state
    }

    private static func query(_ fields: FieldReader) throws(FieldProblem) -> Query {
        guard let kind: Kind = try fields.word("query") else {
            throw FieldProblem("query is missing: name one of rooms, participants, state")
        }
        switch kind {
        case .rooms:
            try fields.refuseUnknown(besides: ["query", "after", "limit"], of: "the query rooms")
            return .rooms(after: try after(fields), limit: try limit(fields))
        case .participants:
            try fields.refuseUnknown(
                besides: ["query", "room", "after", "limit"], of: "the query participants")
            guard let room: RoomID = try fields.name("room") else {
                throw FieldProblem("room is missing: name the room whose participants are asked for")
            }
            return .participants(room: room, after: try after(fields), limit: try limit(fields))
        case .state:
            try fields.refuseUnknown(besides: ["query"], of: "the query state")
            return .state
        }
    }

    /// The one field that may be `null`: the first page, spelt out.
    private static func after<Kind>(_ fields: FieldReader) throws(FieldProblem) -> Identifier<Kind>? {
        if let value = fields.value("after"), value.isNull { return nil }
        return try fields.name("after")
    }

    private static func limit(_ fields: FieldReader) throws(FieldProblem) -> Int {
        guard let count = try fields.count("limit") else { return Query.defaultLimit }
        guard let limit = Int(exactly: count), Query.limits.contains(limit) else {
            throw FieldProblem("limit must be between 1 and 1000, not \(count)")
        }
        return limit
    }
}

package enum QueryEncoder {
    package static func encode(_ query: Query) -> [UInt8] {
        JSONWriter.object(capacity: 256) { writer in
            switch query {
            case .rooms(let after, let limit):
                writer.field("query", "rooms")
                writer.field("after", after)
                writer.field("limit", limit)
            case .participants(let room, let after, let limit):
                writer.field("query", "participants")
                writer.field("room", room)
                writer.field("after", after)
                writer.field("limit", limit)
            case .state:
                writer.field("query", "state")
            }
        }
    }
}
