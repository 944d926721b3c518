/// What a SQLite store says once it was moved: where to, and when. Its application id is another then, so that a
/// worker of any version refuses the file.
struct MoveMark: Hashable, Sendable {
    /// "OVRM".
    static let applicationID: Int64 = 0x4F56_524D

    /// Host, port and database, without a password.
    let target: String
    /// An instant as people read it.
    let at: String

    init(target: String, at: String) {
        self.target = target
        self.at = at
    }

    /// Nil where the file has none.
    init?(in connection: Connection) throws(StoreError) {
        guard try connection.integer("PRAGMA application_id") == Self.applicationID else { return nil }
        target = try connection.text("SELECT target FROM moved")
        at = try connection.text("SELECT at FROM moved")
    }

    func write(to connection: Connection) throws(StoreError) {
        try Self.atOnce(connection) { connection throws(StoreError) in
            try connection.execute(
                """
                DROP TABLE IF EXISTS moved;
                CREATE TABLE moved (target TEXT NOT NULL, at TEXT NOT NULL) STRICT;
                PRAGMA application_id = \(Self.applicationID);
                """)
            let insert = try connection.statement("INSERT INTO moved (target, at) VALUES (?1, ?2)")
            insert.bind(1, target)
            insert.bind(2, at)
            try insert.run()
        }
    }

    static func remove(from connection: Connection) throws(StoreError) {
        try atOnce(connection) { connection throws(StoreError) in
            try connection.execute(
                "DROP TABLE IF EXISTS moved; PRAGMA application_id = \(Schema.applicationID)")
        }
    }

    private static func atOnce(
        _ connection: Connection, _ body: (Connection) throws(StoreError) -> Void
    ) throws(StoreError) {
        try connection.execute("BEGIN IMMEDIATE")
        do throws(StoreError) {
            try body(connection)
            try connection.execute("COMMIT")
        } catch {
            if connection.isInTransaction { try? connection.execute("ROLLBACK") }
            throw error
        }
    }
}
