import CSQLite
import Glibc
import RoomCore
import Testing

@testable import Store

/// Another program's connection to the file, for looking at it and for breaking it.
final class ForeignConnection {
    private var handle: OpaquePointer?

    init(_ path: String) throws {
        try #require(
            sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil) == SQLITE_OK)
    }

    deinit { sqlite3_close_v2(handle) }

    /// The first column of the first row; nil for NULL or none.
    @discardableResult
    func run(_ sql: String) throws -> String? {
        var statement: OpaquePointer?
        var rest = sql
        var first: String?
        repeat {
            var tail: UnsafePointer<CChar>?
            let text = rest
            let next = try text.withCString { start -> String in
                try #require(sqlite3_prepare_v2(handle, start, -1, &statement, &tail) == SQLITE_OK, "\(text)")
                return tail.map { String(cString: $0) } ?? ""
            }
            defer { sqlite3_finalize(statement) }
            var result = sqlite3_step(statement)
            while result == SQLITE_ROW {
                if first == nil { first = sqlite3_column_text(statement, 0).map { String(cString: $0) } }
                result = sqlite3_step(statement)
            }
            try #require(result == SQLITE_DONE || result == SQLITE_MISUSE, "\(text): \(result)")
            rest = next
        } while !rest.allSatisfy(\.isWhitespace)
        return first
    }
}

private func mode(_ path: String) -> UInt32 {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
}

@Suite("opening a database")
struct SQLiteOpeningTests {
    @Test("sets what durability rests on and reads it back")
    func settings() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        let expected = [
            "journal_mode": "wal", "synchronous": "2", "locking_mode": "exclusive", "temp_store": "2",
            "mmap_size": "0", "application_id": "\(Schema.applicationID)",
            "user_version": "\(Schema.migrations.count)",
        ]
        for (name, value) in expected {
            #expect(
                try store.reading { link throws(StoreError) in try link.connection.text("PRAGMA \(name)") }
                    == value)
        }
    }

    @Test("makes files that only their owner may read")
    func fileModes() throws {
        let folder = try TemporaryFolder()
        let before = umask(0o022)
        defer { umask(before) }
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.check()
        #expect(umask(0o022) == 0o022)
        for name in ["rooms.db", "rooms.db-wal", "rooms.db.lock"] {
            #expect(mode(folder.file(name)) == 0o600)
        }
        // In exclusive mode the log's index is in memory: there is nothing that others could share.
        #expect(mode(folder.file("rooms.db-shm")) == 0)
    }

    @Test("keeps every other program out while it is open")
    func exclusive() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        var other: OpaquePointer?
        defer { sqlite3_close_v2(other) }
        #expect(sqlite3_open_v2(folder.file(), &other, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK)
        #expect(sqlite3_exec(other, "SELECT count(*) FROM rooms", nil, nil, nil) == SQLITE_BUSY)
        try store.check()
    }

    @Test("is refused by another program that has the file, until it lets go")
    func lockedByForeigner() throws {
        let folder = try TemporaryFolder()
        try SQLiteStore(path: folder.file(), startedAt: .noon).close()
        var other: ForeignConnection? = try ForeignConnection(folder.file())
        try other?.run("PRAGMA locking_mode = exclusive; BEGIN EXCLUSIVE; SELECT count(*) FROM rooms")
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.file(), startedAt: .noon)
        }
        #expect(error == .busy(path: folder.file()) && error?.isTransient == true)
        other = nil
        try SQLiteStore(path: folder.file(), startedAt: .noon).check()
    }

    @Test("refuses a second owner and says who the first is, whatever path leads there")
    func secondOwner() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try #require(symlink(folder.file(), folder.file("link.db")) == 0)
        var name = [CChar](repeating: 0, count: 256)
        try #require(gethostname(&name, 255) == 0)
        let host = String(decoding: name.prefix { $0 != 0 }.map { UInt8($0) }, as: UTF8.self)
        for path in ["rooms.db", "./rooms.db", "link.db"] {
            let error = #expect(throws: StoreError.self) {
                try SQLiteStore(path: folder.file(path), startedAt: .noon)
            }
            #expect(error == .heldByAnother(pid: getpid(), host: host, path: store.path))
            #expect(error?.isTransient == false)
            #expect(error?.description.contains("pid \(getpid()) on \(host)") == true)
        }
        try store.check()
        store.close()
        try SQLiteStore(path: folder.file(), startedAt: .noon).check()
    }

    @Test("is given up at the close, though a process that is just starting has the descriptors, too")
    func inheritedLock() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        // As a fork leaves it until the program begins: another descriptor of the same open file.
        let inherited = try dup(#require(descriptor(of: store.path + ".lock")))
        defer { Glibc.close(inherited) }
        store.close()
        try SQLiteStore(path: folder.file(), startedAt: .noon).check()
    }

    /// The descriptor under which this process has a file open.
    private func descriptor(of path: String) -> Int32? {
        var wanted = stat()
        var found = stat()
        guard stat(path, &wanted) == 0 else { return nil }
        return (0..<Int32(1_024)).first { number in
            fstat(number, &found) == 0 && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino
        }
    }

    @Test("takes no notice of a lock file that a dead owner left")
    func staleLock() throws {
        let folder = try TemporaryFolder()
        let descriptor = open(folder.file("rooms.db.lock"), O_CREAT | O_WRONLY, 0o600)
        #expect(write(descriptor, "1\nelsewhere\n0\n", 14) == 14)
        Glibc.close(descriptor)
        try SQLiteStore(path: folder.file(), startedAt: .noon).check()
    }

    @Test("refuses a newer schema and leaves it alone")
    func newerSchema() throws {
        let folder = try TemporaryFolder()
        try SQLiteStore(path: folder.file(), startedAt: .noon).close()
        let newer = Schema.migrations.count + 1
        try ForeignConnection(folder.file()).run("PRAGMA user_version = \(newer)")
        #expect(throws: StoreError.newerSchema(found: newer, known: newer - 1)) {
            try SQLiteStore(path: folder.file(), startedAt: .noon)
        }
        #expect(try ForeignConnection(folder.file()).run("PRAGMA user_version") == "\(newer)")
    }

    @Test("refuses another program's database and leaves it alone")
    func foreignDatabase() throws {
        let folder = try TemporaryFolder()
        try ForeignConnection(folder.file()).run("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.file(), startedAt: .noon)
        }
        guard case .notADatabase = error else { return #expect(Bool(false), "\(String(describing: error))") }
        let other = try ForeignConnection(folder.file())
        #expect(try other.run("PRAGMA journal_mode") == "delete")
        #expect(try other.run("SELECT count(*) FROM sqlite_schema") == "1")
    }

    @Test("refuses what is no database at all, and paths that lead nowhere")
    func noDatabase() throws {
        let folder = try TemporaryFolder()
        let descriptor = open(folder.file(), O_CREAT | O_WRONLY, 0o600)
        let text = String(repeating: "not a database\n", count: 400)
        #expect(write(descriptor, text, text.utf8.count) == text.utf8.count)
        Glibc.close(descriptor)
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.file(), startedAt: .noon)
        }
        guard case .notADatabase = error else { return #expect(Bool(false), "\(String(describing: error))") }
        try #require(mkdir(folder.file("folder"), 0o700) == 0)
        for path in [folder.file("none/rooms.db"), "", folder.file("folder"), folder.file("folder/")] {
            let error = #expect(throws: StoreError.self) { try SQLiteStore(path: path, startedAt: .noon) }
            guard case .cannotOpen = error else {
                return #expect(Bool(false), "\(String(describing: error))")
            }
            #expect(error?.isTransient == false)
        }
    }

    @Test("finds a damaged page and keeps the file")
    func damage() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for number in 0..<300 { try store.put(.running(RoomID("room \(number)"))) }
        store.close()
        let descriptor = open(folder.file(), O_RDWR)
        let noise = [UInt8](repeating: 0xA5, count: 600)
        for page in 2..<8 { #expect(pwrite(descriptor, noise, 600, off_t(page * 4_096)) == 600) }
        Glibc.close(descriptor)
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.file(), startedAt: .noon)
        }
        guard case .corrupt = error else { return #expect(Bool(false), "\(String(describing: error))") }
        #expect(error?.isTransient == false && mode(folder.file()) == 0o600)
    }

    // MARK: Migrations

    @Test("brings every earlier schema up to date", arguments: 0..<Schema.migrations.count)
    func migration(from version: Int) throws {
        let folder = try TemporaryFolder()
        func open(_ migrations: [String]) throws -> SQLiteStore {
            try SQLiteStore(
                path: folder.file(), startedAt: .noon, checksIntegrityUpTo: 1 << 20, migrations: migrations,
                onDefect: { _ in })
        }
        if version > 0 { try? open(Array(Schema.migrations.prefix(version))).close() }
        let store = try open(Schema.migrations)
        try store.put(.running("demo"))
        #expect(try store.statistics().schemaVersion == Schema.migrations.count)
    }

    @Test("undoes a migration that fails, as a whole")
    func failingMigration() throws {
        let folder = try TemporaryFolder()
        let next = "CREATE TABLE extra (a INTEGER) STRICT; INSERT INTO missing VALUES (1);"
        #expect(throws: StoreError.self) {
            try SQLiteStore(
                path: folder.file(), startedAt: .noon, checksIntegrityUpTo: 0,
                migrations: Schema.migrations + [next], onDefect: { _ in })
        }
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        #expect(try store.statistics().schemaVersion == Schema.migrations.count)
        let count = try store.reading { link throws(StoreError) in
            try link.connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'")
        }
        #expect(count == 0)
    }
}
