import Glibc
package import RoomCore

/// The store on one SQLite file, owned by one process (see `RoomStore` for what it promises).
///
/// Owned: `OwnerLock` beside the file is taken before SQLite opens it, and SQLite's own exclusive mode keeps
/// every other program out. Durable: a write-ahead log with `synchronous=FULL`; `commit` returns after the
/// log was synced. The one connection and the ownership also close two holes of SQLite before 3.51.3: the race of
/// two connections resetting the log, and locks lost by a second descriptor.
///
/// | state | a call | becomes |
/// | --- | --- | --- |
/// | ready | succeeds, or fails without doubt | ready |
/// | ready | fails with `io` | in doubt: the connection is closed |
/// | in doubt | opens the same file anew (never makes one), replays the log, then goes on | ready or in doubt |
/// | closed | throws `closed` | closed |
package final class SQLiteStore: RoomStore {
    package let path: String
    let migrator: Migrator
    private var lock: OwnerLock?
    /// A copy hangs on its connection and would keep it, and its locks, alive: it goes first.
    private var link: Link? { willSet { copy = nil } }
    /// The backup that is being made.
    var copy: PageCopy?
    /// Told of rooms that cannot be read where a page goes on without them.
    let onDefect: (StoreError) -> Void

    /// What `prune` looked at last, so that answers kept for long sessions are not looked at in each call.
    var answersCursor = Int64.min
    var counts: LiveCounts?
    /// Of the rooms that were loaded last: their commit need not look again, since it compares the version as it writes.
    var heads: [RoomID: RoomRow.Head] = [:]

    /// Whether the search for overdue rooms that is under way met few live ones.
    var livesFew = false

    /// A connection and what is known only with it.
    struct Link {
        let connection: Connection
        let statements: Statements
        let definitions: Definitions
    }

    /// Opens or makes the database, and brings its schema up to date.
    ///
    /// - Parameters:
    ///   - startedAt: told to a worker that is refused because this one owns the file.
    ///   - checksIntegrityUpTo: files of at most this many bytes are looked through for damage, which takes
    ///     about a second for 500 MB.
    package convenience init(
        path: String, startedAt: Instant, checksIntegrityUpTo: Int64 = 64 << 20,
        onDefect: @escaping (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        try self.init(
            path: path, startedAt: startedAt, checksIntegrityUpTo: checksIntegrityUpTo,
            migrations: Schema.migrations, onDefect: onDefect)
    }

    init(
        path: String, startedAt: Instant, checksIntegrityUpTo: Int64, migrations: [String],
        onDefect: @escaping (StoreError) -> Void
    ) throws(StoreError) {
        let resolved = try Self.resolve(path)
        self.path = resolved
        self.onDefect = onDefect
        migrator = Migrator(migrations: migrations)
        lock = try OwnerLock(database: resolved, startedAt: startedAt)
        link = try connect(mayCreate: true, checksIntegrityUpTo: checksIntegrityUpTo)
    }

    package func close() {
        link = nil
        lock = nil
    }

    /// Throws where the path no longer names the file that is in use.
    package func verifyIdentity() throws(StoreError) { try ready().connection.verifyIdentity() }

    // MARK: Opening

    /// The file's one name, whatever links lead to it: two names would mean two locks.
    static func resolve(_ path: String) throws(StoreError) -> String {
        if let found = realpath(path, nil) {
            defer { free(found) }
            return String(cString: found)
        }
        let (folder, name) =
            path.lastIndex(of: "/").map { (String(path[...$0]), String(path[path.index(after: $0)...])) }
            ?? (".", path)
        guard !name.isEmpty, let found = realpath(folder, nil) else {
            throw .cannotOpen(path: path, errno: name.isEmpty ? EISDIR : errno)
        }
        defer { free(found) }
        let resolved = String(cString: found)
        return resolved == "/" ? "/" + name : resolved + "/" + name
    }

    private func connect(mayCreate: Bool, checksIntegrityUpTo most: Int64) throws(StoreError) -> Link {
        let connection = try Connection(path: path, mayCreate: mayCreate)
        try connection.takeExclusively()
        try migrator.recognise(connection)
        try connection.makeDurable()
        try migrator.migrate(connection)
        let size = try connection.integer("PRAGMA page_count") * connection.integer("PRAGMA page_size")
        if size <= most { try connection.verifyIntegrity() }
        connection.noteJournal()
        connection.moveLogLater()
        let statements = try Statements(connection)
        return Link(
            connection: connection, statements: statements,
            definitions: Definitions(statements: statements, connection: connection))
    }

    /// The connection, opened anew where the last one was in doubt.
    private func ready() throws(StoreError) -> Link {
        guard lock != nil else { throw .closed }
        if let link { return link }
        let opened = try connect(mayCreate: false, checksIntegrityUpTo: 0)
        // After a failed sync the kernel may call pages clean that never reached the disk; copying the log
        // into the database writes them again.
        try opened.connection.checkpoint()
        link = opened
        counts = nil
        return opened
    }

    package func moveLog() throws(StoreError) -> Bool { try link?.connection.moveLog() ?? false }

    /// The connection as it is between two transactions.
    func liveConnection() throws(StoreError) -> Connection { try ready().connection }

    /// Where somebody removed the log, saves its content into the database and begins a new one.
    private func keepJournal() throws(StoreError) {
        guard let link, !link.connection.hasJournal else { return }
        try link.connection.verifyIdentity()
        try link.connection.checkpoint()
        self.link = nil
    }

    // MARK: Transactions

    /// A consistent view without writing.
    func reading<Result>(
        _ body: (Link) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let link = try ready()
        return try run(link, link.statements.begin, body)
    }

    /// Writes everything or nothing; durable when it returns.
    func writing<Result>(
        _ body: (Link) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try keepJournal()
        let link = try ready()
        // A file that was taken away would swallow the commit and say nothing.
        try link.connection.verifyIdentity()
        return try run(link, link.statements.beginWrite, body)
    }

    private func run<Result>(
        _ link: Link, _ begin: Statement, _ body: (Link) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        do throws(StoreError) {
            try begin.run()
            let result = try body(link)
            try link.statements.commit.run()
            return result
        } catch {
            undo(link, after: error)
            throw error
        }
    }

    private func undo(_ link: Link, after error: StoreError) {
        link.definitions.forget()
        var isInDoubt = error.leavesDoubt
        if link.connection.isInTransaction {
            do throws(StoreError) { try link.statements.rollback.run() } catch { isInDoubt = true }
        }
        if isInDoubt { self.link = nil }
    }
}

/// Counted by a scan when somebody first asks, then kept up by what was committed.
struct LiveCounts {
    var liveRooms: Int
    var outbox: Int
}
