import RoomCore

/// A room as a row of `rooms`, both ways. What does not fit the rules is refused in both directions, so that
/// nothing unreadable is written and nothing senseless reaches the rules.
enum RoomRow {
    static let columns = """
        id, version, sequence, session, is_open, connected, changed_at, started_at, ends_at, extensions, \
        announced, extender_kind, extended_by, ended_at, cause, definition, session_definition, phase
        """

    /// Writes the whole row, new or not; the version was compared before.
    static let put = """
        INSERT OR REPLACE INTO rooms (
            \(columns), due_at, idle_since)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
        """

    /// Leaves the indexed columns alone, so that an ordinary command touches no index; and is the fence itself: without
    /// the expected version (?20) it changes no row.
    static let update = """
        UPDATE rooms SET version = ?2, sequence = ?3, session = ?4, is_open = ?5, connected = ?6,
            changed_at = ?7, started_at = ?8, ends_at = ?9, extensions = ?10, announced = ?11,
            extender_kind = ?12, extended_by = ?13, ended_at = ?14, cause = ?15, due_at = ?19
        WHERE id = ?1 AND version = ?20
        """

    /// The columns that seldom change: what is compared to choose between `update` and `put`.
    struct Cold: Hashable {
        var definition: Int64?
        var sessionDefinition: Int64?
        var phase: Int64?
        var idleSince: Int64?
    }

    /// What a row must be known of before it is written over.
    struct Head {
        let version: Int64
        let session: Int64
        let cold: Cold
        var isLive: Bool { cold.phase.map { $0 < 2 } ?? false }
        /// Its number; nil where no session is waiting or running.
        var liveSession: Int64? { isLive ? session : nil }
    }

    // MARK: Writing

    static func bindHot(_ room: Room, version: Int64, to statement: Statement) {
        let fields = RoomFields(room)
        statement.bind(1, room.id)
        statement.bind(2, version)
        statement.bind(3, fields.sequence)
        statement.bind(4, fields.session)
        statement.bind(5, fields.isOpen)
        statement.bind(6, fields.connected)
        statement.bind(7, fields.changedAt)
        statement.bind(8, fields.startedAt)
        statement.bind(9, fields.endsAt)
        statement.bind(10, fields.extensions)
        statement.bind(11, fields.announced)
        statement.bind(12, fields.extenderKind)
        statement.bind(13, fields.extendedBy)
        statement.bind(14, fields.endedAt)
        statement.bind(15, fields.cause)
        statement.bind(19, fields.dueAt)
    }

    static func bindCold(_ cold: Cold, to statement: Statement) {
        statement.bind(16, cold.definition)
        statement.bind(17, cold.sessionDefinition)
        statement.bind(18, cold.phase)
        statement.bind(20, cold.idleSince)
    }

    // MARK: Reading

    /// Reads the row the statement stands on, selected by `columns`.
    static func read(
        _ row: Statement, id: RoomID, definitions: Definitions
    ) throws(StoreError) -> StoredRoom {
        var definition: Definition?
        if let key = row.optionalInteger(15) { definition = try definitions.definition(key, of: id) }
        var sessionDefinition: Definition?
        if let key = row.optionalInteger(16) { sessionDefinition = try definitions.definition(key, of: id) }
        let fields = RoomFields(
            sequence: row.integer(2), session: row.integer(3), isOpen: row.integer(4),
            connected: row.optionalInteger(5), changedAt: row.optionalInteger(6),
            startedAt: row.optionalInteger(7), endsAt: row.optionalInteger(8),
            extensions: row.optionalInteger(9), announced: row.optionalInteger(10),
            extenderKind: row.optionalInteger(11), extendedBy: row.text(12),
            endedAt: row.optionalInteger(13), cause: row.optionalInteger(14), phase: row.optionalInteger(17))
        return StoredRoom(
            room: try fields.room(id, definition: definition, sessionDefinition: sessionDefinition),
            version: row.integer(1))
    }

    /// Reads what must be known before the row is written over; selected by `columns` and `idle_since`.
    static func head(_ row: Statement) -> Head {
        Head(
            version: row.integer(1), session: row.integer(3),
            cold: Cold(
                definition: row.optionalInteger(15), sessionDefinition: row.optionalInteger(16),
                phase: row.optionalInteger(17), idleSince: row.optionalInteger(18)))
    }
}
