import CPostgres
import FoundationEssentials
import Testing

@testable import Store

/// The server that `scripts/test` starts, named by OVERTIME_TEST_POSTGRES: the URL of a user who may make databases.
enum PostgresServer {
    static let url = ProcessInfo.processInfo.environment["OVERTIME_TEST_POSTGRES"]
    static let isThere = url != nil
}

/// A database of its own on that server, gone with the test.
final class PostgresDatabase {
    let url: String
    private let server: String
    private let name: String

    init() throws {
        let server = try #require(PostgresServer.url, "OVERTIME_TEST_POSTGRES is not set")
        name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
        self.server = server
        let path = try #require(server.lastIndex(of: "/"))
        url = "\(server[...path])\(name)"
        try Self.execute("CREATE DATABASE \(name)", at: server)
    }

    deinit { _ = try? Self.execute("DROP DATABASE IF EXISTS \(name) WITH (FORCE)", at: server) }

    /// Runs SQL as somebody else than the store would; gives the first value of the last statement.
    @discardableResult
    func execute(_ sql: String) throws -> String? { try Self.execute(sql, at: url) }

    @discardableResult
    private static func execute(_ sql: String, at url: String) throws -> String? {
        let connection = PQconnectdb(url)
        defer { PQfinish(connection) }
        let result = PQexec(connection, sql)
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else {
            throw Failure(text: String(cString: PQerrorMessage(connection)))
        }
        guard PQntuples(result) > 0, PQnfields(result) > 0 else { return nil }
        return PQgetvalue(result, 0, 0).map { String(cString: $0) }
    }

    struct Failure: Error { let text: String }
}
