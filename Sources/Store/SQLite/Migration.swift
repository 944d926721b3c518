/// Brings a database to this program's schema, one numbered step a transaction.
struct Migrator {
    let migrations: [String]

    /// Throws before anything is written where the file is somebody else's or newer than this program.
    ///
    /// - Parameter allowsMoved: whether a store that was moved to another place is let through.
    func recognise(_ connection: Connection, allowsMoved: Bool = false) throws(StoreError) {
        let application = try connection.integer("PRAGMA application_id")
        let version = Int(try connection.integer("PRAGMA user_version"))
        let isEmpty = try connection.integer("SELECT count(*) FROM sqlite_schema") == 0
        if let mark = try MoveMark(in: connection) {
            guard allowsMoved else { throw .moved(path: connection.path, to: mark.target, at: mark.at) }
            return
        }
        guard application == Schema.applicationID || (application == 0 && version == 0 && isEmpty) else {
            throw .notADatabase(
                path: connection.path, "its application id is \(application), not \(Schema.applicationID)")
        }
        guard version <= migrations.count else {
            throw .newerSchema(found: version, known: migrations.count)
        }
        guard version >= 0 else { throw .corrupt("its schema number is \(version)") }
    }

    /// A crash in between leaves the database at a whole step, and the next start goes on from there.
    func migrate(_ connection: Connection) throws(StoreError) {
        let version = Int(try connection.integer("PRAGMA user_version"))
        for (index, script) in migrations.enumerated() where index >= version {
            do throws(StoreError) {
                try connection.execute(
                    """
                    BEGIN IMMEDIATE;
                    \(script)
                    PRAGMA application_id = \(Schema.applicationID);
                    PRAGMA user_version = \(index + 1);
                    COMMIT;
                    """)
            } catch {
                if connection.isInTransaction { try? connection.execute("ROLLBACK") }
                throw error
            }
        }
    }
}
