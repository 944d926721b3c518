package import RoomCore

/// A store that can be copied while it is used, in steps between other calls, on the same thread.
package protocol BackupSource: AnyObject {
    /// The one name of the database's file.
    var path: String { get }

    /// Begins a copy; another one that is under way must have ended before.
    func beginBackup(to file: BackupFile) throws(BackupError)

    /// Copies some pages more. Returns true once the copy is whole: it holds everything that was committed by then,
    /// and may be completed (`BackupFile.complete`) on another thread.
    func continueBackup(pages: Int) throws(BackupError) -> Bool

    /// Gives the copy up; without one it does nothing.
    func abandonBackup()
}

extension SQLiteStore: BackupSource {
    package func beginBackup(to file: BackupFile) throws(BackupError) {
        guard copy == nil else { throw .interrupted("another backup is being made") }
        try file.prepare()
        do throws(BackupError) {
            copy = try startCopy(to: file.part)
        } catch {
            file.discard()
            throw error
        }
    }

    package func continueBackup(pages: Int) throws(BackupError) -> Bool {
        // The connection was given up after a failure, and the copy with it.
        guard let copy else { throw .interrupted("the store failed while the backup was made") }
        do throws(BackupError) {
            guard try copy.step(pages: Int32(clamping: max(1, pages))) else { return false }
            self.copy = nil
            return true
        } catch {
            self.copy = nil
            throw error
        }
    }

    package func abandonBackup() { copy = nil }

    private func startCopy(to path: String) throws(BackupError) -> PageCopy {
        let connection = try BackupError.wrapping { () throws(StoreError) in try liveConnection() }
        return try connection.copy(to: path)
    }
}

/// Copies of a store that no worker uses at present.
package enum OfflineStore {
    /// Copies the store to a file, as a worker would, under the lock that keeps a worker out meanwhile.
    ///
    /// - Returns: the copy's size.
    package static func backUp(
        store path: String, to target: String, replaces: Bool, startedAt: Instant
    ) throws(BackupError) -> Int64 {
        guard FileIdentity(of: path) != nil else { throw .missing(path: path) }
        let (store, lock) = try BackupError.wrapping { () throws(StoreError) in
            let resolved = try SQLiteStore.resolve(path)
            return (resolved, try OwnerLock(database: resolved, startedAt: startedAt))
        }
        defer { withExtendedLifetime(lock) {} }
        let connection = try BackupError.wrapping { () throws(StoreError) in
            let connection = try Connection(path: store, mayCreate: false)
            try connection.takeExclusively()
            // Neither migrated nor otherwise changed: the worker that comes back may be an older program.
            try Migrator(migrations: Schema.migrations).recognise(connection)
            return connection
        }
        let file = try BackupFile(target, store: store, replaces: replaces)
        try file.prepare()
        do throws(BackupError) {
            let copy = try connection.copy(to: file.part)
            while try !copy.step(pages: 4_096) {}
        } catch {
            file.discard()
            throw error
        }
        return try file.complete()
    }
}
