import Glibc
package import RoomCore

/// Puts a backup in a store's place, while no worker uses it.
///
/// **Sequences.** What was published after the backup is forgotten by it and known to the subscribers, so each room's
/// sequence is advanced by `jump`: no new event is then taken for one that was seen. Where a store is replaced that
/// can be read, the higher of the two sequences counts, and rooms that only it knows keep their sequence and session
/// number as pruned rooms do. So the same backup may be restored again.
///
/// **Outbox.** Its rows stay as they are and are published when the worker starts: each is, byte for byte, the event
/// that was or would have been published under its number, and all their numbers are below the jump.
///
/// **Order of steps.** The new database is whole and durable under another name before anything is moved; the old one
/// keeps its name until it is exchanged in one step.
package struct Restore: Sendable {
    /// How far each room's sequence is advanced.
    package static let jump: Int64 = 1_000_000

    package struct Result: Hashable, Sendable {
        /// Rooms whose sequence was advanced.
        package let rooms: Int
        /// Rooms that only the replaced store knew: of them sequence and session number are kept.
        package let keptRooms: Int
        /// Events that wait in the outbox.
        package let outbox: Int
        /// Where the replaced store is now; nil where there was none.
        package let aside: String?
        /// False where there was a store and it could not be read.
        package let comparedWithOld: Bool
    }

    private let store: String
    private let source: String
    private let asideEnding: String
    private var fresh: String { store + ".restore" }

    /// - Parameters:
    ///   - asideEnding: what the name of a replaced store ends with, such as `before-20261129T120000Z`.
    package init(store path: String, from source: String, asideEnding: String) throws(BackupError) {
        do throws(StoreError) {
            store = try SQLiteStore.resolve(path)
        } catch {
            throw .store(error)
        }
        self.source = source
        self.asideEnding = asideEnding
    }

    /// - Parameter replaces: an existing store is put aside; without it there must be none.
    package func run(replaces: Bool, startedAt: Instant) throws(BackupError) -> Result {
        guard let given = FileIdentity(of: source) else { throw .missing(path: source) }
        let lock: OwnerLock
        do throws(StoreError) {
            lock = try OwnerLock(database: store, startedAt: startedAt)
        } catch {
            throw .store(error)
        }
        defer { withExtendedLifetime(lock) {} }
        let old = FileIdentity(of: store)
        guard given != old else { throw .isStore(path: source) }
        guard old == nil || replaces else { throw .exists(path: store) }
        defer { for ending in ["", "-wal", "-journal", "-shm"] { unlink(fresh + ending) } }
        try copySource()
        let known = old == nil ? false : settleOld()
        let counts = try advance(comparingWith: known ? store : nil)
        try BackupFile.check(fresh)
        _ = try BackupFile.sync(fresh)
        let aside = try exchange(hasOld: old != nil)
        return Result(
            rooms: counts.rooms, keptRooms: counts.kept, outbox: counts.outbox, aside: aside,
            comparedWithOld: old == nil || known)
    }

    /// Copies the backup as SQLite reads it, with whatever log stands beside it, and looks whether it is ours.
    private func copySource() throws(BackupError) {
        for ending in ["", "-wal", "-journal", "-shm"] { unlink(fresh + ending) }
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(fresh, errno) }
        close(descriptor)
        try Self.readable(source) { connection throws(BackupError) in
            let copy = try connection.copy(to: fresh)
            while try !copy.step(pages: 4_096) {}
        }
        try BackupError.wrapping { () throws(StoreError) in
            // A store that was moved and is to be used again is one without the mark.
            let copied = try Connection(path: fresh, mayCreate: false)
            try copied.takeExclusively()
            if try MoveMark(in: copied) != nil { try MoveMark.remove(from: copied) }
        }
        try BackupFile.check(fresh)
    }

    /// Opens a database of this program for reading; what is none, is empty or newer is refused.
    private static func readable(
        _ path: String, _ body: (Connection) throws(BackupError) -> Void
    ) throws(BackupError) {
        let connection: Connection
        do throws(StoreError) {
            connection = try Connection(reading: path)
            try Migrator(migrations: Schema.migrations).recognise(connection, allowsMoved: true)
            guard try connection.integer("PRAGMA user_version") > 0 else {
                throw .notADatabase(path: path, "it is empty")
            }
        } catch {
            switch error {
            case .corrupt(let text): throw .damaged(path: path, text)
            default: throw .store(error)
            }
        }
        try body(connection)
    }

    /// Brings the old store's log into its file, so that the file alone is the whole store. False where it cannot be
    /// read: then its log is put aside with it.
    private func settleOld() -> Bool {
        do throws(StoreError) {
            let connection = try Connection(path: store, mayCreate: false)
            connection.keepLog()
            try connection.takeExclusively()
            try Migrator(migrations: Schema.migrations).recognise(connection, allowsMoved: true)
            guard try connection.integer("PRAGMA user_version") > 0 else { return false }
            try connection.verifyIntegrity()
            _ = try connection.text("PRAGMA journal_mode = delete")
            return true
        } catch {
            return false
        }
    }

    private func advance(
        comparingWith old: String?
    ) throws(BackupError) -> (rooms: Int, kept: Int, outbox: Int) {
        do throws(StoreError) {
            let connection = try Connection(path: fresh, mayCreate: false)
            try connection.takeExclusively()
            if let old {
                let attach = try connection.statement("ATTACH ?1 AS old")
                attach.bind(1, old)
                try attach.run()
            }
            try connection.execute("BEGIN IMMEDIATE")
            var kept = 0
            let rooms = Int(try connection.integer("SELECT count(*) FROM rooms"))
            if old != nil {
                try connection.execute(
                    """
                    UPDATE rooms SET sequence = max(sequence, coalesce(
                        (SELECT theirs.sequence FROM old.rooms AS theirs WHERE theirs.id = rooms.id), 0));
                    INSERT INTO rooms (id, version, sequence, session, is_open)
                        SELECT id, version, sequence, session, 0 FROM old.rooms
                        WHERE id NOT IN (SELECT id FROM main.rooms);
                    """)
                kept = Int(try connection.integer("SELECT count(*) FROM rooms")) - rooms
            }
            // The run that was under way in the backup ended well as far as its messages are concerned.
            try connection.execute(
                """
                UPDATE rooms SET sequence = sequence + \(Self.jump);
                DELETE FROM attempts WHERE run IN (SELECT id FROM runs WHERE crashed_at IS NULL);
                DELETE FROM runs WHERE crashed_at IS NULL;
                COMMIT;
                """)
            let outbox = Int(try connection.integer("SELECT count(*) FROM outbox"))
            return (rooms, kept, outbox)
        } catch {
            throw .store(error)
        }
    }

    /// Puts the old store aside under a name of its own, and the new one in its place.
    private func exchange(hasOld: Bool) throws(BackupError) -> String? {
        let aside = try freeName()
        // A log without its database, or one that could not be read: SQLite would take it for the new database's.
        for ending in ["-wal", "-journal", "-shm"] where FileIdentity(of: store + ending) != nil {
            guard rename(store + ending, aside + ending) == 0 else { throw .system(aside + ending, errno) }
        }
        if hasOld {
            guard link(store, aside) == 0 else { throw .system(aside, errno) }
        }
        guard rename(fresh, store) == 0 else { throw .system(store, errno) }
        try StorePath.syncFolder(of: store)
        return hasOld ? aside : nil
    }

    private func freeName() throws(BackupError) -> String {
        for number in 1...1_000 {
            let name = store + "." + asideEnding + (number == 1 ? "" : "-\(number)")
            let isTaken = ["", "-wal", "-journal", "-shm"].contains { FileIdentity(of: name + $0) != nil }
            if !isTaken { return name }
        }
        throw .exists(path: store + "." + asideEnding)
    }
}
