/// Brings a database to this program's schema, one numbered step a transaction, under a lock: of several workers that
/// start at once one makes a step and the others find it made.
struct PostgresMigrator {
    let migrations: [String]

    func migrate(_ connection: PostgresConnection) throws(StoreError) {
        while try makeStep(connection) {}
    }

    /// Makes the next step; false where there is none.
    private func makeStep(_ connection: PostgresConnection) throws(StoreError) -> Bool {
        try connection.execute("BEGIN; SELECT pg_advisory_xact_lock(\(PostgresSchema.lock), 1)")
        do throws(StoreError) {
            let version = try version(connection)
            let isMissing = version < migrations.count
            if isMissing {
                try connection.execute(
                    """
                    \(migrations[version]);
                    UPDATE \(PostgresSchema.name).schema_version SET version = \(version + 1)
                    """)
            }
            try connection.execute("COMMIT")
            return isMissing
        } catch {
            try? connection.execute("ROLLBACK")
            throw error
        }
    }

    /// The number of the schema that is there; makes the place for one where there is none.
    private func version(_ connection: PostgresConnection) throws(StoreError) -> Int {
        let schema = PostgresSchema.name
        let found = try connection.ask(
            """
            SELECT to_regnamespace('\(schema)') IS NOT NULL, to_regclass('\(schema).schema_version') IS NOT NULL,
                EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('\(schema)'))
            """)
        if found.integer(0, 1) == 0 {
            guard found.integer(0, 2) == 0 else {
                throw .notADatabase(path: connection.server, "its schema \(schema) holds other tables")
            }
            if found.integer(0, 0) == 0 { try connection.execute("CREATE SCHEMA \(schema)") }
            try connection.execute(
                """
                CREATE TABLE \(schema).schema_version (version integer NOT NULL);
                INSERT INTO \(schema).schema_version VALUES (0)
                """)
        }
        let answer = try connection.ask("SELECT version FROM \(schema).schema_version")
        let version = Int(answer.integer(0, 0))
        guard answer.count == 1, version >= 0 else {
            throw .corrupt("its schema number is missing or \(version)")
        }
        guard version <= migrations.count else {
            throw .newerSchema(found: version, known: migrations.count)
        }
        return version
    }
}
