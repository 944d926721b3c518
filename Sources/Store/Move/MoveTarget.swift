/// The PostgreSQL database that a store is moved to.
///
/// Its table `moves` has one row where it was filled by a migration. While that is not finished no worker is let in
/// (`PostgresStore`), so that everything there is the migration's own: where it goes on is the last key of each table.
final class MoveTarget {
    /// What the database knows of a migration.
    struct State {
        let source: String
        let fingerprint: String
        /// When it was finished; nil while it is not.
        let finishedAt: String?
    }

    private let connection: PostgresConnection
    /// Host, port and database, without user and password.
    let name: String

    /// Connects, looks at what the server guarantees, makes the tables, and keeps other migrations out.
    init(url: String) throws(MoveError) {
        let isAlone: Bool
        do throws(StoreError) {
            let url = try PostgresURL(url)
            name = url.name
            connection = try PostgresConnection(url)
            _ = try connection.ask(PostgresSession.settings)
            if let defect = PostgresSession.defect(in: try connection.ask(PostgresSession.guarantees)) {
                throw .settingRefused(defect)
            }
            // A host that is gone must not keep the lock for hours.
            _ = try connection.ask(
                """
                SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
                    set_config('tcp_keepalives_count', '3', false)
                """)
            try PostgresMigrator(migrations: PostgresSchema.migrations).migrate(connection)
            let lock = try connection.ask("SELECT pg_try_advisory_lock(\(PostgresSchema.lock), 4)")
            isAlone = lock.integer(0, 0) == 1
        } catch {
            throw .target(error)
        }
        guard isAlone else { throw .underWay(server: name) }
    }

    // MARK: The migration's own row

    func state() throws(StoreError) -> State? {
        let found = try connection.ask("SELECT source, fingerprint, finished_at::text FROM moves")
        guard found.count > 0 else { return nil }
        return State(
            source: found.text(0, 0) ?? "", fingerprint: found.text(0, 1) ?? "",
            finishedAt: found.text(0, 2))
    }

    /// From now on no worker is let in. Throws where the database is used, or not empty.
    func begin(source: String, fingerprint: String) throws(MoveError) {
        try inTransaction { target throws(MoveError) in
            // Of a worker that connects at this moment either its run is seen here, or it sees this row.
            try target.asking("SELECT pg_advisory_xact_lock(\(PostgresSchema.lock), 1)")
            try target.refuseWorkers(orEarlier: true)
            let tables = MovedTable.all.map(\.name).filter { $0 != "runs" }
            let found = try target.asking(
                "SELECT " + tables.map { "EXISTS (SELECT FROM \($0))" }.joined(separator: ", "))
            for (index, table) in tables.enumerated() where found.integer(0, Int32(index)) == 1 {
                throw .occupied(server: name, "has \(table) of its own")
            }
            try target.asking("DELETE FROM runs")
            try target.asking("INSERT INTO moves (id, source, fingerprint) VALUES (1, $1, $2)") {
                $0.add(source)
                $0.add(fingerprint)
            }
        }
    }

    /// Forgets what an unfinished migration has moved so far.
    func beginAnew(source: String, fingerprint: String) throws(MoveError) {
        try inTransaction { target throws(MoveError) in
            try target.refuseWorkers()
            try target.asking("TRUNCATE \(MovedTable.all.map(\.name).joined(separator: ", "))")
            try target.asking("UPDATE moves SET source = $1, fingerprint = $2, begun_at = clock_timestamp()")
            {
                $0.add(source)
                $0.add(fingerprint)
            }
        }
    }

    /// What was moved is not to be gone on from.
    func condemn() throws(MoveError) {
        try asking("UPDATE moves SET fingerprint = '', finished_at = NULL")
    }

    /// Lets workers in.
    func finish() throws(MoveError) {
        try refuseWorkers()
        try asking("UPDATE moves SET finished_at = clock_timestamp()")
    }

    /// - Parameter earlier: also one that holds no lease at the moment, or is of a version that takes none.
    func refuseWorkers(orEarlier earlier: Bool = false) throws(MoveError) {
        let mayComeBack = "crashed_at IS NULL AND (seen_at IS NULL OR shards = 0 AND \(seen(Lease.patience)))"
        let found = try asking(
            """
            SELECT id, host FROM runs WHERE shards > 0 AND \(seen(Lease.length))
            \(earlier ? "OR \(mayComeBack)" : "")
            ORDER BY started_at DESC LIMIT 1
            """)
        guard found.count > 0 else { return }
        throw .inUse(server: name, run: found.text(0, 0) ?? "?", host: found.text(0, 1) ?? "?")
    }

    private func seen(_ age: Int64) -> String {
        "seen_at > floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - \(age)"
    }

    // MARK: Rows

    /// The last row's key; nil for an empty table.
    func lastKey(of table: MovedTable) throws(StoreError) -> MovedRow? {
        let names = table.key.map(\.name).joined(separator: ", ")
        let order = Self.order(of: table).map { "\($0) DESC" }.joined(separator: ", ")
        let found = try connection.ask("SELECT \(names) FROM \(table.name) ORDER BY \(order) LIMIT 1")
        return found.count > 0 ? Self.row(found, 0, table.key) : nil
    }

    /// Writes rows in one transaction.
    func write(_ rows: [MovedRow], to table: MovedTable) throws(StoreError) {
        let names = table.columns.map(\.name).joined(separator: ", ")
        let lists = table.columns.enumerated().map { "$\($0.offset + 1)::\($0.element.kind.type)[]" }
            .joined(separator: ", ")
        _ = try connection.ask(
            "INSERT INTO \(table.name) (\(names)) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(\(lists))"
        ) { parameters in
            for (index, column) in table.columns.enumerated() {
                switch column.kind {
                case .integer:
                    parameters.add(
                        rows.map { row -> Int64? in
                            if case .integer(let number) = row.values[index] { number } else { nil }
                        })
                case .name, .bytes, .text:
                    parameters.addOptional(
                        rows.map { row -> [UInt8]? in
                            if case .bytes(let bytes) = row.values[index] { bytes } else { nil }
                        }, areTexts: column.kind == .text)
                }
            }
        }
    }

    /// Rows behind `key`, in byte order of their keys.
    func page(of table: MovedTable, after key: MovedRow?, rows most: Int) throws(StoreError) -> [MovedRow] {
        let names = table.columns.map(\.name).joined(separator: ", ")
        let order = Self.order(of: table).joined(separator: ", ")
        let places = table.key.enumerated().map { "$\($0.offset + 1)::\($0.element.kind.type)" }
            .joined(separator: ", ")
        let found = try connection.ask(
            """
            SELECT \(names) FROM \(table.name) \(key == nil ? "" : "WHERE (\(order)) > (\(places))")
            ORDER BY \(order) LIMIT \(most)
            """
        ) { parameters in
            for value in key?.values ?? [] {
                switch value {
                case .none: parameters.addNull()
                case .integer(let number): parameters.add(number)
                case .bytes(let bytes): parameters.add(bytes: bytes)
                }
            }
        }
        return (0..<found.count).map { Self.row(found, $0, table.columns[...]) }
    }

    /// What is given next stands above everything that was moved.
    func setNumbers(position: Int64, answer: Int64) throws(StoreError) {
        _ = try connection.ask(
            """
            SELECT setval('positions', greatest($1::bigint, 1), $1::bigint > 0),
                setval(pg_get_serial_sequence('answers', 'number'), greatest($2::bigint, 1), $2::bigint > 0)
            """
        ) {
            $0.add(position)
            $0.add(answer)
        }
    }

    // MARK: SQL

    /// The key in byte order, whatever the database's collation.
    private static func order(of table: MovedTable) -> [String] {
        table.key.map { $0.kind == .text ? "\($0.name) COLLATE \"C\"" : $0.name }
    }

    private static func row(
        _ answer: Answer, _ row: Int, _ columns: ArraySlice<MovedTable.Column>
    ) -> MovedRow {
        MovedRow(
            values: columns.enumerated().map { index, column in
                let place = Int32(index)
                if answer.isNull(row, place) { return .none }
                return column.kind == .integer
                    ? .integer(answer.integer(row, place)) : .bytes(answer.bytes(row, place))
            })
    }

    @discardableResult
    private func asking(
        _ sql: String, _ fill: (inout Parameters) -> Void = { _ in }
    ) throws(MoveError) -> Answer {
        do throws(StoreError) { return try connection.ask(sql, fill) } catch { throw .target(error) }
    }

    private func inTransaction(
        _ body: (MoveTarget) throws(MoveError) -> Void
    ) throws(MoveError) {
        try asking("BEGIN")
        do throws(MoveError) {
            try body(self)
            try asking("COMMIT")
        } catch {
            _ = try? connection.ask("ROLLBACK")
            throw error
        }
    }
}
