import CPostgres

/// What one statement gave: rows in the binary format, or only how many it touched.
final class Answer {
    private let result: OpaquePointer
    let count: Int

    init(_ result: OpaquePointer) {
        self.result = result
        count = Int(PQntuples(result))
    }

    deinit { PQclear(result) }

    /// How many rows an INSERT, UPDATE or DELETE touched.
    var touched: Int {
        guard let text = PQcmdTuples(result) else { return 0 }
        return Int(String(cString: text)) ?? 0
    }

    func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(result, Int32(row), column) == 1 }

    /// An integer of any width, or a truth value; 0 for NULL.
    func integer(_ row: Int, _ column: Int32) -> Int64 {
        guard let start = PQgetvalue(result, Int32(row), column) else { return 0 }
        let bytes = UnsafeRawBufferPointer(start: start, count: length(row, column))
        guard let first = bytes.first, bytes.count <= 8 else { return 0 }
        let sign: Int64 = bytes.count > 1 && first & 0x80 != 0 ? -1 : 0
        return bytes.reduce(sign) { $0 << 8 | Int64($1) }
    }

    func optionalInteger(_ row: Int, _ column: Int32) -> Int64? {
        isNull(row, column) ? nil : integer(row, column)
    }

    /// Nil for NULL and for what is not UTF-8.
    func text(_ row: Int, _ column: Int32) -> String? {
        guard !isNull(row, column), let start = PQgetvalue(result, Int32(row), column) else { return nil }
        return String(
            validating: UnsafeRawBufferPointer(start: start, count: length(row, column)), as: UTF8.self)
    }

    func bytes(_ row: Int, _ column: Int32) -> [UInt8] {
        guard let start = PQgetvalue(result, Int32(row), column) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: length(row, column)))
    }

    private func length(_ row: Int, _ column: Int32) -> Int {
        Int(PQgetlength(result, Int32(row), column))
    }
}
