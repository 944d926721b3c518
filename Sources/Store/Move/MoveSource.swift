import RoomCore

/// The SQLite store that is moved, held as its owner: a worker is refused meanwhile, and none runs.
final class MoveSource {
    let path: String
    private let lock: OwnerLock
    private let connection: Connection

    /// Opens the file, never makes one, and brings its schema up to date as a worker would.
    init(path: String, startedAt: Instant) throws(MoveError) {
        guard FileIdentity(of: path) != nil else { throw .missing(path: path) }
        do throws(StoreError) {
            let resolved = try SQLiteStore.resolve(path)
            lock = try OwnerLock(database: resolved, startedAt: startedAt)
            connection = try Connection(path: resolved, mayCreate: false)
            self.path = resolved
            try connection.takeExclusively()
            let migrator = Migrator(migrations: Schema.migrations)
            try migrator.recognise(connection, allowsMoved: true)
            guard try connection.integer("PRAGMA user_version") > 0 else {
                throw .notADatabase(path: resolved, "it is empty")
            }
            try connection.makeDurable()
            // A marked one has been moved as it is.
            if try MoveMark(in: connection) == nil { try migrator.migrate(connection) }
            try connection.verifyIntegrity()
            try refuseLostDefinitions()
        } catch {
            throw .source(error)
        }
    }

    /// Such a room would arrive as one without a definition.
    private func refuseLostDefinitions() throws(StoreError) {
        let lost = try connection.statement(
            """
            SELECT id FROM rooms WHERE definition NOT IN (SELECT id FROM definitions)
                OR session_definition NOT IN (SELECT id FROM definitions) LIMIT 1
            """)
        guard try lost.step() else { return }
        throw .corruptRoom(RoomID(lost.text(0) ?? "?"), "its definition is missing")
    }

    // MARK: Reading

    /// Rows behind `key`, in byte order of their keys: as many as fit, at least one where there is any.
    func page(
        of table: MovedTable, after key: MovedRow?, rows most: Int, bytes: Int
    ) throws(StoreError) -> [MovedRow] {
        let names = table.key.map(\.source).joined(separator: ", ")
        let places = (1...table.keyCount).map { "?\($0)" }.joined(separator: ", ")
        let columns = table.columns.map(\.source).joined(separator: ", ")
        let statement = try connection.statement(
            """
            SELECT \(columns) FROM \(table.source) \(key == nil ? "" : "WHERE (\(names)) > (\(places))")
            ORDER BY \(names) LIMIT \(most)
            """)
        for (index, (column, value)) in zip(table.key, key?.values ?? []).enumerated() {
            let place = Int32(index + 1)
            switch value {
            case .none: break
            case .integer(let number): statement.bind(place, number)
            case .bytes(let bytes):
                // A name is compared as text, also one that is not UTF-8.
                if column.kind == .bytes {
                    statement.bind(place, bytes)
                } else {
                    statement.bindText(place, bytes)
                }
            }
        }
        var rows: [MovedRow] = []
        var size = 0
        while size < bytes, try statement.step() {
            let row = MovedRow(
                values: table.columns.indices.map { index in
                    let place = Int32(index)
                    if statement.isNull(place) { return .none }
                    return table.columns[index].kind == .integer
                        ? .integer(statement.integer(place)) : .bytes(statement.bytes(place))
                })
            size += row.size
            rows.append(row)
        }
        return rows
    }

    /// Changes with whatever a worker writes: what was moved is of no use once it is another.
    func fingerprint() throws(StoreError) -> String {
        try connection.text(
            """
            SELECT
                (SELECT count(*) || '-' || coalesce(sum(version & 0xFFFFFFFF), 0)
                    || '-' || coalesce(sum(sequence & 0xFFFFFFFF), 0) FROM rooms)
                || '-' || (SELECT count(*) FROM participants)
                || '-' || (SELECT count(*) || '-' || coalesce(max(number), 0) FROM answers)
                || '-' || (SELECT count(*) || '-' || coalesce(min(position), 0) FROM outbox)
                || '-' || (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox')
                || '-' || (SELECT count(*) || '-' || coalesce(max(id), '') FROM runs)
                || '-' || (SELECT count(*) FROM attempts) || '-' || (SELECT count(*) FROM leftovers)
            """)
    }

    /// The highest numbers that were ever given: of outbox rows, and of answers that are there.
    func highest() throws(StoreError) -> (position: Int64, answer: Int64) {
        let position = try connection.integer(
            """
            SELECT max(
                coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'), 0),
                coalesce((SELECT max(position) FROM outbox), 0), coalesce((SELECT max(position) FROM answers), 0))
            """)
        return (position, try connection.integer("SELECT coalesce(max(number), 0) FROM answers"))
    }

    // MARK: The mark

    /// Where it was moved to, and when; nil where it was not.
    func mark() throws(StoreError) -> MoveMark? { try MoveMark(in: connection) }

    /// From now on a worker refuses this file.
    func setMark(_ mark: MoveMark) throws(StoreError) { try mark.write(to: connection) }

    func removeMark() throws(StoreError) { try MoveMark.remove(from: connection) }
}
