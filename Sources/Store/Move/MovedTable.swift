/// A table that moves from SQLite to PostgreSQL: the same columns on both sides, in one order, the key's first.
///
/// Byte order is the order of keys on both sides, so that pages of one meet those of the other.
struct MovedTable: Sendable {
    enum Kind {
        case integer
        /// TEXT in SQLite, bytea in PostgreSQL.
        case name
        case bytes
        case text

        /// What a value is in PostgreSQL.
        var type: String {
            switch self {
            case .integer: "bigint"
            case .name, .bytes: "bytea"
            case .text: "text"
            }
        }
    }

    struct Column: Sendable {
        let name: String
        let kind: Kind
        /// What is selected in SQLite.
        let source: String

        init(_ name: String, _ kind: Kind = .integer, from source: String? = nil) {
            self.name = name
            self.kind = kind
            self.source = source ?? name
        }
    }

    let name: String
    let columns: [Column]
    /// How many of the columns are the key.
    let keyCount: Int
    /// What is selected from in SQLite.
    let source: String

    init(_ name: String, key: [Column], _ rest: [Column], source: String? = nil) {
        self.name = name
        columns = key + rest
        keyCount = key.count
        self.source = source ?? name
    }

    var key: ArraySlice<Column> { columns.prefix(keyCount) }

    /// Who owns the events that were moved: no run, so that the first worker that starts takes them over.
    static let owner = "moved"

    /// All of them, in the order in which they move. `definitions` comes with the rooms, and `probes` means nothing.
    static let all: [MovedTable] = [
        MovedTable(
            "rooms", key: [Column("id", .name, from: "r.id")],
            [
                "version", "sequence", "session", "is_open", "connected", "changed_at", "started_at",
                "ends_at", "extensions", "announced", "extender_kind",
            ].map { Column($0) } + [Column("extended_by", .name)]
                + ["ended_at", "cause"].map { Column($0) }
                + [
                    Column("definition", .text, from: "d.text"),
                    Column(
                        "session_definition", .text,
                        from: "CASE WHEN r.session_definition = r.definition THEN NULL ELSE s.text END"),
                ] + ["phase", "due_at", "idle_since"].map { Column($0) },
            source: """
                rooms AS r LEFT JOIN definitions AS d ON d.id = r.definition
                LEFT JOIN definitions AS s ON s.id = r.session_definition
                """),
        MovedTable(
            "participants",
            key: [Column("room", .name), Column("session"), Column("name", .name, from: "user")],
            [Column("role"), Column("joined_at")]),
        MovedTable("leftovers", key: [Column("room", .name)], [Column("below")]),
        MovedTable(
            "answers", key: [Column("number")],
            [
                Column("room", .name), Column("id", .name), Column("session"), Column("at"),
                Column("position"), Column("canonical", .bytes), Column("reply", .bytes),
            ]),
        MovedTable(
            "outbox", key: [Column("position")],
            [
                Column("owner", .text, from: "'\(owner)'"), Column("format"), Column("room", .name),
                Column("sequence"), Column("type", .text), Column("message_id", .name), Column("timestamp"),
                Column("body", .bytes), Column("trace", .text),
            ]),
        // One that has not ended is taken for crashed by the next worker that starts, here as there.
        MovedTable(
            "runs", key: [Column("id", .text)],
            [Column("pid"), Column("host", .text), Column("started_at"), Column("crashed_at")]),
        MovedTable("attempts", key: [Column("key", .text), Column("run", .text)], []),
    ]
}

/// A row as both sides read it.
struct MovedRow: Hashable, Sendable {
    enum Value: Hashable, Sendable {
        case none
        case integer(Int64)
        case bytes([UInt8])
    }

    let values: [Value]

    var size: Int {
        values.reduce(0) { sum, value in
            if case .bytes(let bytes) = value { sum + bytes.count } else { sum + 8 }
        }
    }

    func key(of table: MovedTable) -> MovedRow { MovedRow(values: Array(values.prefix(table.keyCount))) }

    /// The row's key for people.
    func name(in table: MovedTable) -> String {
        zip(table.key, values).map { column, value in
            switch value {
            case .none: "\(column.name) NULL"
            case .integer(let number): "\(column.name) \(number)"
            case .bytes(let bytes):
                "\(column.name) \(String(decoding: bytes, as: UTF8.self).debugDescription)"
            }
        }.joined(separator: ", ")
    }

    /// The first column in which two rows differ; nil where they are equal.
    func difference(from other: MovedRow, in table: MovedTable) -> String? {
        let pairs = zip(values, other.values)
        return zip(table.columns, pairs).first { $0.1.0 != $0.1.1 }?.0.name
    }
}
