import CSQLite
import RoomCore

/// One prepared statement: bind, step, read, reset.
///
/// Binding never throws: the first failure is kept and thrown by the next `step`, so that call sites stay
/// readable. SQLite copies what is bound: a small Swift string has no address that would stay.
final class Statement {
    private let handle: OpaquePointer
    private let connection: OpaquePointer
    private let path: String
    private var bindingResult: Int32 = SQLITE_OK

    init(_ sql: String, on connection: OpaquePointer, path: String) throws(StoreError) {
        var prepared: OpaquePointer?
        let result = sqlite3_prepare_v3(
            connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard result == SQLITE_OK, let prepared else {
            throw StoreError.ofSQLite(result, on: connection, path: path, isPreparing: true)
        }
        handle = prepared
        self.connection = connection
        self.path = path
    }

    deinit { sqlite3_finalize(handle) }

    // MARK: Binding

    func bind(_ index: Int32, _ value: Int64) { note(sqlite3_bind_int64(handle, index, value)) }

    func bind(_ index: Int32, _ value: Int64?) {
        if let value { bind(index, value) } else { note(sqlite3_bind_null(handle, index)) }
    }

    func bind(_ index: Int32, _ text: String) {
        var text = text
        text.withUTF8 { bytes in
            let start = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
            // Without an address SQLite would bind NULL, not the empty text.
            note(
                start == nil
                    ? sqlite3_bind_text(handle, index, "", 0, overtime_sqlite_transient())
                    : sqlite3_bind_text64(
                        handle, index, start, UInt64(bytes.count), overtime_sqlite_transient(),
                        UInt8(SQLITE_UTF8)))
        }
    }

    func bind(_ index: Int32, _ text: String?) {
        if let text { bind(index, text) } else { note(sqlite3_bind_null(handle, index)) }
    }

    /// Bytes as text, also such as are no UTF-8.
    func bindText(_ index: Int32, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            guard let start = bytes.bindMemory(to: CChar.self).baseAddress, !bytes.isEmpty else {
                return bind(index, "")
            }
            note(
                sqlite3_bind_text64(
                    handle, index, start, UInt64(bytes.count), overtime_sqlite_transient(), UInt8(SQLITE_UTF8)
                ))
        }
    }

    func bind<Kind>(_ index: Int32, _ identifier: Identifier<Kind>) { bind(index, identifier.text) }

    func bind(_ index: Int32, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, !bytes.isEmpty else {
                return note(sqlite3_bind_zeroblob(handle, index, 0))
            }
            note(sqlite3_bind_blob64(handle, index, start, UInt64(bytes.count), overtime_sqlite_transient()))
        }
    }

    private func note(_ result: Int32) {
        if result != SQLITE_OK, bindingResult == SQLITE_OK { bindingResult = result }
    }

    // MARK: Running

    /// - Returns: true where there is a row to read.
    func step() throws(StoreError) -> Bool {
        guard bindingResult == SQLITE_OK else {
            throw StoreError.ofSQLite(bindingResult, on: connection, path: path)
        }
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let result: throw StoreError.ofSQLite(result, on: connection, path: path)
        }
    }

    /// Runs to the end, rows or not, and resets.
    func run() throws(StoreError) {
        defer { reset() }
        while try step() {}
    }

    /// Makes the statement ready for its next use; its bindings are forgotten.
    func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        bindingResult = SQLITE_OK
    }

    // MARK: Reading

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    /// The text exactly as it was bound; nil for NULL and for what is not UTF-8.
    func text(_ column: Int32) -> String? {
        guard let start = sqlite3_column_text(handle, column) else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
        return String(validating: bytes, as: UTF8.self)
    }

    func bytes(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(handle, column) else { return [] }
        let count = Int(sqlite3_column_bytes(handle, column))
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    /// SQLite's own count of virtual machine steps since the last call: what a cost is compared by.
    func takeStepCount() -> Int { Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 1)) }
}
