import CSQLite

/// A copy of a database in the making, page by page, over the connection that uses the database.
///
/// What that connection commits meanwhile is carried into the pages copied before, so the copy is the database as it
/// is at the last step. Between two steps nothing is held: neither a lock nor a view that would keep the log long.
final class PageCopy {
    private let path: String
    private var destination: OpaquePointer?
    private var backup: OpaquePointer?
    /// Steps in a row that found the database locked.
    private var refusals = 0

    /// - Parameter path: an empty file that nobody else uses.
    init(from source: OpaquePointer, to path: String) throws(BackupError) {
        self.path = path
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        guard sqlite3_open_v2(path, &destination, flags, nil) == SQLITE_OK else { throw failure() }
        // It counts for nothing until it is whole, checked and synced: a journal of it would only cost time.
        let settings = "PRAGMA locking_mode = exclusive; PRAGMA journal_mode = off; PRAGMA synchronous = off"
        guard sqlite3_exec(destination, settings, nil, nil, nil) == SQLITE_OK else { throw failure() }
        backup = sqlite3_backup_init(destination, "main", source, "main")
        guard backup != nil else { throw failure() }
    }

    deinit { end() }

    /// Copies some pages. Returns true once all of them are copied and the file is closed.
    func step(pages: Int32) throws(BackupError) -> Bool {
        guard let backup else { throw .interrupted("the copy has ended already") }
        switch sqlite3_backup_step(backup, pages) {
        case SQLITE_OK:
            refusals = 0
            return false
        case SQLITE_BUSY, SQLITE_LOCKED:
            // Another program's doing: neither file is used by anybody else of ours.
            refusals += 1
            guard refusals < 10 else { throw .interrupted("another program locks the database") }
            return false
        case SQLITE_DONE:
            let result = end()
            guard result == SQLITE_OK else {
                throw .cannotWrite(path: path, String(cString: sqlite3_errstr(result)))
            }
            return true
        case let result:
            throw .cannotWrite(path: path, String(cString: sqlite3_errstr(result)))
        }
    }

    @discardableResult
    private func end() -> Int32 {
        let result = backup.map { sqlite3_backup_finish($0) } ?? SQLITE_OK
        backup = nil
        sqlite3_close_v2(destination)
        destination = nil
        return result
    }

    private func failure() -> BackupError {
        let text = String(cString: sqlite3_errmsg(destination))
        return .cannotWrite(path: path, text)
    }
}
