/// PostgreSQL's five-letter codes, by what a worker can do about them.
///
/// Source: PostgreSQL's manual, appendix A.
enum SQLState {
    /// Two transactions got in each other's way: the whole of it is run again.
    static func isRetry(_ code: String) -> Bool { code == "40001" || code == "40P01" }

    static func isUniqueViolation(_ code: String) -> Bool { code == "23505" }

    /// - Parameter server: the server's name for messages, without a password.
    static func error(_ code: String, _ text: String, server: String) -> StoreError {
        let said = "\(text), SQLSTATE \(code)"
        switch code {
        case "53100": return .full(path: server)
        case "25006": return .readOnly(path: server)
        // A lock or a statement took too long; serialization failures that went on after all tries.
        case "55P03", "57014", "40001", "40P01": return .busy(path: server)
        case "42501", "3D000", "3F000": return .denied(server: server, said)
        case "XX001", "XX002": return .corrupt(said)
        default: break
        }
        switch code.prefix(2) {
        // Not the schema that this program made.
        case "42", "26": return .corrupt(said)
        case "28": return .denied(server: server, said)
        // A value, a constraint, a limit: the server is well and refuses what it was given.
        case "22", "23", "54": return .refused(said)
        default: return .unreachable(server: server, said)
        }
    }
}
