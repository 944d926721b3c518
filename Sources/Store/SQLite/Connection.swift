import CSQLite
import Glibc
import RoomCore

/// The one SQLite connection, with the settings that durability rests on, each read back.
///
/// It is the only thing that opens the database file: closing any other descriptor of it in this process
/// would drop SQLite's locks without an error.
final class Connection {
    let path: String
    private let handle: OpaquePointer
    /// The log file as it was when everything was set up; nil where the file system tells no identity.
    private var journal: FileIdentity?
    /// Pages in the log after the last commit, as SQLite tells them; nil where it moves them by itself.
    private var logPages: UnsafeMutablePointer<Int32>?

    /// - Parameter mayCreate: false on reopening, so that a database that was taken away is never made anew.
    init(path: String, mayCreate: Bool) throws(StoreError) {
        self.path = path
        _ = Self.librarySettings
        let flags =
            SQLITE_OPEN_READWRITE | (mayCreate ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX
            | SQLITE_OPEN_EXRESCODE
        var opened: OpaquePointer?
        // The journal takes over the database's mode, so 0600 covers both. The mask is the process's, hence
        // only at the start, when a file may be made.
        let mask = mayCreate ? umask(0o077) : nil
        let result = sqlite3_open_v2(path, &opened, flags, nil)
        if let mask { umask(mask) }
        guard result == SQLITE_OK, let opened else {
            let error = StoreError.ofSQLite(result, on: opened, path: path)
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        guard sqlite3_db_readonly(handle, "main") == 0 else { throw .notWritable(path: path) }
    }

    /// For reading somebody's file as it is: nothing of it is changed, and no setting is made.
    init(reading path: String) throws(StoreError) {
        self.path = path
        _ = Self.librarySettings
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let result = sqlite3_open_v2(path, &opened, flags, nil)
        guard result == SQLITE_OK, let opened else {
            let error = StoreError.ofSQLite(result, on: opened, path: path)
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        sqlite3_busy_timeout(handle, 1_000)
    }

    /// The file is free once the statements are gone too.
    deinit {
        if logPages != nil { sqlite3_wal_hook(handle, nil, nil) }
        sqlite3_close_v2(handle)
        logPages?.deallocate()
    }

    private static let librarySettings = overtime_sqlite_drop_memory_statistics()

    // MARK: Running SQL

    func statement(_ sql: String) throws(StoreError) -> Statement {
        try Statement(sql, on: handle, path: path)
    }

    /// For scripts of several statements: migrations.
    func execute(_ script: String) throws(StoreError) {
        let result = sqlite3_exec(handle, script, nil, nil, nil)
        guard result == SQLITE_OK else { throw StoreError.ofSQLite(result, on: handle, path: path) }
    }

    func integer(_ sql: String) throws(StoreError) -> Int64 {
        let statement = try statement(sql)
        return try statement.step() ? statement.integer(0) : 0
    }

    func text(_ sql: String) throws(StoreError) -> String {
        let statement = try statement(sql)
        return try statement.step() ? statement.text(0) ?? "" : ""
    }

    /// True inside a transaction, also after an error that ended it halfway.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
    var changes: Int { Int(sqlite3_changes64(handle)) }
    var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    // MARK: Settings

    /// Must come before the first access: in exclusive mode the first read takes the file for good, and the
    /// index of the write-ahead log stays in memory instead of in a file shared with others.
    func takeExclusively() throws(StoreError) {
        sqlite3_busy_timeout(handle, 1_000)
        try set("locking_mode", to: "exclusive")
        // Memory-mapped I/O would turn a disk error into a signal.
        try set("mmap_size", to: "0")
    }

    /// 8 MiB between checkpoints.
    private static let logPagesAtMost: Int32 = 2_000

    /// Writes to the file, so only a database that was recognised gets here.
    func makeDurable() throws(StoreError) {
        try set("journal_mode", to: "wal")
        try set("synchronous", to: "2")
        try set("temp_store", to: "2")
        try set("secure_delete", to: "fast", readAs: "2")
        try set("cell_size_check", to: "1")
        try set("trusted_schema", to: "0")
        try set("foreign_keys", to: "0")
        try set("cache_size", to: "-8192")
        // A log that once grew larger is cut back to 64 MiB.
        try set("wal_autocheckpoint", to: "\(Self.logPagesAtMost)")
        try set("journal_size_limit", to: "67108864")
    }

    private func set(_ name: String, to value: String, readAs expected: String? = nil) throws(StoreError) {
        try execute("PRAGMA \(name) = \(value)")
        let found = try text("PRAGMA \(name)")
        guard found == expected ?? value else {
            throw .settingRefused(
                "SQLite has \(name) = \(found) instead of \(value): use the library of the distribution")
        }
    }

    /// For a database that may be damaged: closing it changes neither it nor its log.
    func keepLog() { overtime_sqlite_keep_log(handle) }

    // MARK: Copies

    /// A copy in the making; it must end before this connection is given up.
    func copy(to path: String) throws(BackupError) -> PageCopy { try PageCopy(from: handle, to: path) }

    // MARK: Identity

    /// Throws where the path no longer names the file that is open. SQLite looks by `stat`, without opening.
    func verifyIdentity() throws(StoreError) {
        var hasMoved: Int32 = 0
        let result = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
        guard result == SQLITE_OK else { throw StoreError.ofSQLite(result, on: nil, path: path) }
        guard hasMoved != 0 else { return }
        // SQLite says the same of a path that cannot be looked at, such as one in a directory without rights.
        var status = stat()
        let reason = stat(path, &status) == 0 ? ENOENT : errno
        guard reason == ENOENT || reason == ENOTDIR else { throw .outOfReach(path: path, errno: reason) }
        throw .replaced(path: path)
    }

    private var journalPath: String { path + "-wal" }

    func noteJournal() { journal = FileIdentity(of: journalPath) }

    /// False where somebody removed the write-ahead log: what is committed then would be gone after a crash.
    var hasJournal: Bool {
        guard let journal else { return true }
        var status = stat()
        if stat(journalPath, &status) != 0 { return errno != ENOENT && errno != ENOTDIR }
        return journal == FileIdentity(of: journalPath)
    }

    /// By `stat` alone: a descriptor on the file would drop SQLite's locks.
    var journalSize: Int64 { FileIdentity(of: journalPath)?.size ?? 0 }

    /// From now on a commit moves nothing from the log into the database; `moveLog` does, when there is time.
    func moveLogLater() {
        let pages = logPages ?? .allocate(capacity: 1)
        pages.initialize(to: 0)
        logPages = pages
        // It takes the place of SQLite's own hook, which is the one that moves pages.
        sqlite3_wal_hook(
            handle,
            { pages, _, _, count in
                pages?.assumingMemoryBound(to: Int32.self).pointee = count
                return SQLITE_OK
            }, pages)
    }

    /// Moves the log into the database once it has grown; false where it has not. A failure loses nothing: all is in the
    /// log still, which grows until a later try succeeds.
    func moveLog() throws(StoreError) -> Bool {
        guard let logPages, logPages.pointee >= Self.logPagesAtMost else { return false }
        logPages.pointee = 0
        let result = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        guard result == SQLITE_OK else { throw StoreError.ofSQLite(result, on: handle, path: path) }
        return true
    }

    /// Copies the whole log into the database and syncs it.
    func checkpoint() throws(StoreError) {
        let result = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        guard result == SQLITE_OK else { throw StoreError.ofSQLite(result, on: handle, path: path) }
    }

    /// Looks for damage; takes time in proportion to the file's size.
    func verifyIntegrity() throws(StoreError) {
        let found = try text("PRAGMA quick_check(1)")
        guard found == "ok" else { throw .corrupt(found) }
    }
}

/// Which file a path names, seen without opening it.
struct FileIdentity: Equatable {
    private let device: UInt64
    private let node: UInt64
    let size: Int64

    init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(status.st_dev)
        node = UInt64(status.st_ino)
        size = Int64(status.st_size)
    }

    static func == (left: Self, right: Self) -> Bool {
        left.device == right.device && left.node == right.node
    }
}
