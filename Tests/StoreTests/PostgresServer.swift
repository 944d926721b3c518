import CPostgres
import Dispatch
import FoundationEssentials
import Glibc
import Testing

@testable import Store

/// The server that `scripts/test` starts, named by OVERTIME_TEST_POSTGRES: the URL of a user who may make databases.
enum PostgresServer {
    static let url = ProcessInfo.processInfo.environment["OVERTIME_TEST_POSTGRES"]
    static let isThere = url != nil

    /// Whether its processes are this machine's, so that they can be stopped and others started.
    static let isLocal = url?.contains("@127.0.0.1:") == true && access("\(root)/scripts/postgres", X_OK) == 0

    static var port: UInt16 {
        url.flatMap { $0.split(separator: ":").last?.split(separator: "/").first }.flatMap { UInt16($0) }
            ?? 5432
    }

    static func url(of database: PostgresDatabase, over port: UInt16) -> String {
        database.url.replacing(":\(Self.port)/", with: ":\(port)/")
    }

    private static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
        .joined(separator: "/")

    /// Runs `scripts/postgres`; gives what it prints.
    @discardableResult
    static func script(_ arguments: String...) throws -> String {
        let words = ["\(root)/scripts/postgres"] + arguments
        guard let output = popen(words.map { "'\($0)'" }.joined(separator: " "), "r") else {
            throw Timeout(what: "a script runs")
        }
        var text: [UInt8] = []
        while case let byte = fgetc(output), byte != EOF { text.append(UInt8(truncatingIfNeeded: byte)) }
        guard pclose(output) == 0 else {
            throw OtherSession.Failure(text: "\(words.joined(separator: " ")) failed")
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").last.map(String.init) ?? ""
    }
}

/// A database of its own on that server, gone with the test.
final class PostgresDatabase {
    let url: String
    private let server: String
    let name: String

    /// - Parameter options: of CREATE DATABASE.
    init(options: String = "") throws {
        let server = try #require(PostgresServer.url, "OVERTIME_TEST_POSTGRES is not set")
        name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
        self.server = server
        let path = try #require(server.lastIndex(of: "/"))
        url = "\(server[...path])\(name)"
        try Self.execute("CREATE DATABASE \(name) \(options)", at: server)
    }

    deinit { _ = try? Self.execute("DROP DATABASE IF EXISTS \(name) WITH (FORCE)", at: server) }

    func open() throws -> PostgresStore { try PostgresStore(url: url) }

    /// Runs SQL as somebody else than the store would; gives the first value of the last statement.
    ///
    /// - Parameter elsewhere: whether from another database of the server.
    @discardableResult
    func execute(_ sql: String, elsewhere: Bool = false) throws -> String? {
        try Self.execute(sql, at: elsewhere ? server : url)
    }

    @discardableResult
    private static func execute(_ sql: String, at url: String) throws -> String? {
        try OtherSession(url).execute(sql)
    }

    /// Returns once so many sessions of this database wait for a lock.
    func waitForWaiting(_ count: Int) throws {
        let waiting = """
            SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        let session = try OtherSession(url)
        try waitUntil("\(count) sessions wait for a lock") { try session.execute(waiting) == "\(count)" }
    }

    /// Does something to the server processes of the stores that are connected: `pg_terminate_backend`, say.
    func toStores(_ function: String, elsewhere: Bool = false) throws {
        try execute(
            """
            SELECT \(function)(pid) FROM pg_stat_activity
            WHERE datname = '\(name)' AND application_name = 'overtime worker'
            """, elsewhere: elsewhere)
    }
}

/// A session of somebody else, with which a test holds locks and looks at what is stored.
final class OtherSession {
    private let connection: OpaquePointer?

    init(_ url: String) throws {
        connection = PQconnectdb(url)
        guard PQstatus(connection) == CONNECTION_OK else { throw failure }
        PQsetNoticeProcessor(connection, { _, _ in }, nil)
    }

    deinit { PQfinish(connection) }

    /// Gives the first value of the last statement.
    @discardableResult
    func execute(_ sql: String) throws -> String? { try rows(sql).first ?? nil }

    /// The first column.
    func rows(_ sql: String) throws -> [String?] {
        let result = PQexec(connection, sql)
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else { throw failure }
        guard PQnfields(result) > 0 else { return [] }
        return (0..<PQntuples(result)).map { row in
            PQgetisnull(result, row, 0) == 1 ? nil : PQgetvalue(result, row, 0).map { String(cString: $0) }
        }
    }

    private var failure: Failure { Failure(text: String(cString: PQerrorMessage(connection))) }

    struct Failure: Error { let text: String }
}

// MARK: Threads

/// Something that is used by one thread at a time, which the compiler cannot see.
struct Handed<Value>: @unchecked Sendable {
    let value: Value
}

/// A call that blocks, on a thread of its own.
final class Blocking<Value>: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private var result: Result<Value, any Error>?

    init(_ body: @escaping () throws -> Value) {
        let handed = Handed(value: body)
        DispatchQueue(label: "blocking").async {
            self.result = Result { try handed.value() }
            self.done.signal()
        }
    }

    /// Waits for its end; once only.
    func value() throws -> Value {
        guard done.wait(timeout: .now() + 60) == .success, let result else {
            throw Timeout(what: "a call ends")
        }
        return try result.get()
    }

    /// The error that it ended with; nil where it succeeded.
    func error() throws -> StoreError? {
        do {
            _ = try value()
            return nil
        } catch let error as StoreError {
            return error
        }
    }
}

struct Timeout: Error { let what: String }

func waitUntil(_ what: String, seconds: Int = 20, _ isSo: () throws -> Bool) throws {
    let end = DispatchTime.now() + .seconds(seconds)
    while try !isSo() {
        guard DispatchTime.now() < end else { throw Timeout(what: what) }
        usleep(5_000)
    }
}
