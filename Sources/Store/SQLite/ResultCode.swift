import CSQLite

extension StoreError {
    /// What an SQLite result means to the worker. Must be asked before another call on the connection.
    ///
    /// - Parameter isPreparing: a statement that cannot even be prepared means a schema that is not ours.
    static func ofSQLite(
        _ result: Int32, on connection: OpaquePointer?, path: String, isPreparing: Bool = false
    ) -> StoreError {
        let text =
            connection.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(result))
        switch result & 0xFF {
        case SQLITE_BUSY, SQLITE_LOCKED: return .busy(path: path)
        case SQLITE_FULL: return .full(path: path)
        case SQLITE_READONLY: return .readOnly(path: path)
        case SQLITE_CORRUPT: return .corrupt(text)
        case SQLITE_NOTADB: return .notADatabase(path: path, text)
        case SQLITE_CANTOPEN:
            return .cannotOpen(path: path, errno: connection.map { sqlite3_system_errno($0) } ?? 0)
        case SQLITE_CONSTRAINT, SQLITE_TOOBIG, SQLITE_MISMATCH: return .refused(text)
        case SQLITE_ERROR where isPreparing: return .corrupt(text)
        default: return .io(code: result, text)
        }
    }
}
