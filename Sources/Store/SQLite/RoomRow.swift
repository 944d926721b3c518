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
        statement.bind(1, room.id)
        statement.bind(2, version)
        statement.bind(3, room.sequence)
        statement.bind(4, room.sessionNumber)
        statement.bind(5, room.isOpen ? 1 : 0)
        statement.bind(19, room.dueAt?.milliseconds)
        guard let session = room.session else { return }
        statement.bind(6, session.connected)
        statement.bind(7, session.changedAt.milliseconds)
        switch session.phase {
        case .waiting:
            break
        case .running(let run):
            statement.bind(8, run.startedAt.milliseconds)
            statement.bind(9, run.endsAt.milliseconds)
            statement.bind(10, run.extensions)
            statement.bind(11, Int64(run.announced))
            switch run.extendedBy {
            case nil: break
            case .user(let user):
                statement.bind(12, 0)
                statement.bind(13, user)
            case .operator(let name):
                statement.bind(12, 1)
                statement.bind(13, name)
            }
        case .ended(let ending):
            statement.bind(8, ending.startedAt?.milliseconds)
            statement.bind(9, ending.endsAt?.milliseconds)
            statement.bind(10, ending.extensions)
            statement.bind(14, ending.endedAt.milliseconds)
            statement.bind(15, ending.cause == .elapsed ? 0 : 1)
        }
    }

    static func bindCold(_ cold: Cold, to statement: Statement) {
        statement.bind(16, cold.definition)
        statement.bind(17, cold.sessionDefinition)
        statement.bind(18, cold.phase)
        statement.bind(20, cold.idleSince)
    }

    static func phase(of session: Session?) -> Int64? {
        switch session?.phase {
        case nil: nil
        case .waiting: 0
        case .running: 1
        case .ended: 2
        }
    }

    /// Since when the room waits to be pruned; nil while it is in use or open, and once it was pruned.
    static func idleSince(_ room: Room) -> Int64? {
        guard !room.isOpen, case .ended(let ending) = room.session?.phase else { return nil }
        return ending.endedAt.milliseconds
    }

    // MARK: Reading

    /// Reads the row the statement stands on, selected by `columns`.
    static func read(
        _ row: Statement, id: RoomID, definitions: Definitions
    ) throws(StoreError) -> StoredRoom {
        var room = Room(
            id: id, sequence: row.integer(2), sessionNumber: row.integer(3), isOpen: row.integer(4) == 1)
        if let key = row.optionalInteger(15) { room.definition = try definitions.definition(key, of: id) }
        if !row.isNull(17) {
            guard let key = row.optionalInteger(16) else {
                throw .corruptRoom(id, "its session has no definition")
            }
            room.session = Session(
                number: room.sessionNumber, definition: try definitions.definition(key, of: id),
                phase: try phase(row, of: id), connected: row.integer(5),
                changedAt: try instant(row, 6, of: id))
        }
        if let defect = room.defect { throw .corruptRoom(id, defect) }
        return StoredRoom(room: room, version: row.integer(1))
    }

    /// Reads what must be known before the row is written over; selected by `columns` and `idle_since`.
    static func head(_ row: Statement) -> Head {
        Head(
            version: row.integer(1), session: row.integer(3),
            cold: Cold(
                definition: row.optionalInteger(15), sessionDefinition: row.optionalInteger(16),
                phase: row.optionalInteger(17), idleSince: row.optionalInteger(18)))
    }

    private static func phase(_ row: Statement, of id: RoomID) throws(StoreError) -> Session.Phase {
        switch row.integer(17) {
        case 0:
            return .waiting
        case 1:
            return .running(
                Run(
                    startedAt: try instant(row, 7, of: id), endsAt: try instant(row, 8, of: id),
                    extensions: row.integer(9), announced: Int(row.integer(10)),
                    extendedBy: try extender(row, of: id)))
        case 2:
            return .ended(
                Ending(
                    startedAt: row.isNull(7) ? nil : try instant(row, 7, of: id),
                    endsAt: row.isNull(8) ? nil : try instant(row, 8, of: id),
                    endedAt: try instant(row, 13, of: id),
                    cause: row.integer(14) == 0 ? .elapsed : .destroyed, extensions: row.integer(9)))
        case let other:
            throw .corruptRoom(id, "its phase is \(other)")
        }
    }

    private static func extender(_ row: Statement, of id: RoomID) throws(StoreError) -> Extender? {
        guard let kind = row.optionalInteger(11) else { return nil }
        guard let name = row.text(12) else { throw .corruptRoom(id, "its last extender has no name") }
        return kind == 0 ? .user(UserID(name)) : .operator(name)
    }

    /// `Instant` would clamp what lies outside its bounds and so change a room silently.
    private static func instant(
        _ row: Statement, _ column: Int32, of id: RoomID
    ) throws(StoreError) -> Instant {
        guard let milliseconds = row.optionalInteger(column) else {
            throw .corruptRoom(id, "an instant of its session is missing")
        }
        let instant = Instant(milliseconds: milliseconds)
        guard instant.milliseconds == milliseconds else {
            throw .corruptRoom(id, "an instant of its session is \(milliseconds)")
        }
        return instant
    }
}

extension Room {
    /// What the rules could not work with; nil for a sound room.
    var defect: String? {
        if sequence < 0 { return "its sequence is \(sequence)" }
        if sessionNumber < 0 { return "its session number is \(sessionNumber)" }
        guard let session else { return nil }
        if session.number != sessionNumber {
            return "its session \(session.number) is not the latest, \(sessionNumber)"
        }
        if session.connected < 0 { return "\(session.connected) users are connected" }
        switch session.phase {
        case .waiting:
            return nil
        case .running(let run):
            if run.endsAt < run.startedAt { return "its session ends before it starts" }
            if run.extensions < 0 { return "its session was extended \(run.extensions) times" }
            let windows = session.definition.policy.windows.count
            return (0...windows).contains(run.announced)
                ? nil : "window \(run.announced) of \(windows) is announced"
        case .ended(let ending):
            if ending.extensions < 0 { return "its session was extended \(ending.extensions) times" }
            return session.connected == 0
                ? nil : "\(session.connected) users are connected to an ended session"
        }
    }
}
