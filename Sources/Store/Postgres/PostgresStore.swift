import Glibc
package import RoomCore

/// The store on a PostgreSQL server, which several workers share (see `RoomStore` and `SharedStore` for what it
/// promises).
///
/// Durable: `commit` returns after the server has said that the transaction is on its disk, and a server that would not
/// put it there (`fsync = off`) is refused. One connection on the worker's thread; a batch takes one round trip to
/// load and two to commit, however many rooms it has, and the same number of statements.
///
/// | state | a call | becomes |
/// | --- | --- | --- |
/// | ready | succeeds, or the server refuses it | ready |
/// | ready | the connection is lost, or the server says nothing | in doubt: the connection is closed |
/// | in doubt | connects anew, then goes on | ready or in doubt |
/// | closed | throws `closed` | closed |
package final class PostgresStore: SharedStore {
    private let url: PostgresURL
    private let migrations: [String]
    private let silence: Int32
    /// Told of rooms that cannot be read where a page goes on without them.
    let onDefect: (StoreError) -> Void
    private var connection: PostgresConnection?
    private var isClosed = false

    /// This worker's run, once it has begun: the owner of what it commits.
    var run: RunRow?
    var definitions = DefinitionTexts()
    /// Of the rooms that were loaded last: what their commit may leave unwritten.
    var heads: [RoomID: RoomHead] = [:]
    /// What `prune` looked at last, so that answers kept for long sessions are not looked at in each call.
    var answersCursor = Int64.min
    /// Whether the search for overdue rooms that is under way met few live ones.
    var livesFew = false
    /// How many rooms live, where they are too many to be counted each time; and how often that was asked since.
    var countedLive: (rooms: Int, age: Int)?

    private static let tries = 5

    /// Connects, and brings the schema up to date; of several workers that start at once one does it.
    ///
    /// - Parameter url: a connection URL of libpq; several hosts may stand in it, of which the one that takes writes
    ///   is used.
    package convenience init(
        url: String, onDefect: @escaping (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        try self.init(url: url, migrations: PostgresSchema.migrations, onDefect: onDefect)
    }

    init(
        url: String, migrations: [String] = PostgresSchema.migrations,
        silence: Int32 = PostgresConnection.silence, onDefect: @escaping (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        self.url = try PostgresURL(url)
        self.migrations = migrations
        self.silence = silence
        self.onDefect = onDefect
        connection = try connect()
    }

    /// What is wrong with a connection URL, without repeating it; nil where it can be read.
    package static func problem(withURL url: String) -> String? { PostgresURL.problem(with: url) }

    /// Host, port and database, for the log.
    package var name: String { url.name }

    package func close() {
        connection = nil
        isClosed = true
    }

    /// Round trips and statements of the present connection: what a cost is compared by.
    package var traffic: (roundTrips: Int, statements: Int) {
        (connection?.roundTrips ?? 0, connection?.statements ?? 0)
    }

    // MARK: Connecting

    private func connect() throws(StoreError) -> PostgresConnection {
        let opened = try PostgresConnection(url, silence: silence)
        _ = try opened.ask(PostgresSession.settings)
        if let defect = PostgresSession.defect(in: try opened.ask(PostgresSession.guarantees)) {
            throw .settingRefused(defect)
        }
        try PostgresMigrator(migrations: migrations).migrate(opened)
        try opened.prepareAll()
        let moves = try opened.run([PostgresConnection.Call(.unfinishedMove)])
        if let move = moves.first, move.count > 0 {
            throw .halfMoved(server: url.name, from: move.text(0, 0) ?? "?")
        }
        return opened
    }

    /// The connection, made anew where the last one is gone. Whoever has been let in once goes on trying: a password
    /// that is being changed must not end a worker.
    private func ready() throws(StoreError) -> PostgresConnection {
        guard !isClosed else { throw .closed }
        if let connection { return connection }
        do throws(StoreError) {
            let opened = try connect()
            connection = opened
            return opened
        } catch .denied(let server, let text) {
            throw .unreachable(server: server, text)
        }
    }

    // MARK: Calls and transactions

    /// Statements in one round trip, each by itself.
    func ask(_ calls: [PostgresConnection.Call]) throws(StoreError) -> [Answer] {
        let connection = try ready()
        do throws(StoreError) { return try connection.run(calls) } catch { throw closing(after: error) }
    }

    func ask(
        _ statement: PostgresStatement, _ fill: (inout Parameters) -> Void = { _ in }
    ) throws(StoreError) -> Answer {
        guard let answer = try ask([PostgresConnection.Call(statement, fill)]).first else {
            throw .corrupt("no answer to \(statement.rawValue)")
        }
        return answer
    }

    /// A transaction in two round trips: what it locks and reads first, then, by that, what it writes. It is run
    /// again where it got in another's way.
    ///
    /// - Parameters:
    ///   - refusal: what a refused statement means to the caller; nil for what its code says.
    ///   - body: takes the answers of `first`; gives the statements to write, or throws to write nothing.
    func transaction<Result>(
        _ first: [PostgresConnection.Call] = [],
        refusal: (PostgresConnection.Failure) -> StoreError? = { _ in nil },
        _ body: ([Answer]) throws(StoreError) -> ([PostgresConnection.Call], Result)
    ) throws(StoreError) -> Result {
        try run(first, refusal: refusal, body).result
    }

    /// The same, for the answers to what `body` gave.
    func transactionGivingAnswers(
        _ first: [PostgresConnection.Call],
        _ body: ([Answer]) throws(StoreError) -> [PostgresConnection.Call]
    ) throws(StoreError) -> [Answer] {
        try run(first, refusal: { _ in nil }) { answers throws(StoreError) in (try body(answers), ()) }
            .answers
    }

    private func run<Result>(
        _ first: [PostgresConnection.Call], refusal: (PostgresConnection.Failure) -> StoreError?,
        _ body: ([Answer]) throws(StoreError) -> ([PostgresConnection.Call], Result)
    ) throws(StoreError) -> (result: Result, answers: [Answer]) {
        var tries = 0
        while true {
            let connection = try ready()
            do throws(StoreError) {
                let answers = try connection.run([PostgresConnection.Call(.begin)] + first)
                let (calls, result) = try body(Array(answers.dropFirst()))
                let written = try connection.run(calls + [PostgresConnection.Call(.commit)])
                return (result, written)
            } catch {
                let failure = connection.failure
                undo(connection, after: error)
                tries += 1
                if let failure, SQLState.isRetry(failure.code), tries < Self.tries { continue }
                throw closing(after: failure.flatMap(refusal) ?? error)
            }
        }
    }

    /// A server that did not answer is not asked once more: it rolls back when the connection is closed.
    private func undo(_ connection: PostgresConnection, after error: StoreError) {
        do throws(StoreError) {
            if case .unreachable = error { throw error }
            _ = try connection.run([PostgresConnection.Call(.rollback)])
        } catch {
            self.connection = nil
        }
    }

    /// Closes a connection that cannot be trusted any more.
    private func closing(after error: StoreError) -> StoreError {
        switch error {
        case .unreachable, .readOnly, .corrupt:
            connection = nil
        case .denied(let server, let text):
            connection = nil
            // It was allowed once: who took the right away may give it back.
            return .unreachable(server: server, text)
        default:
            break
        }
        return error
    }

    package func now() throws(StoreError) -> Instant {
        Instant(milliseconds: try ask(.now).integer(0, 0))
    }

    package func moveLog() throws(StoreError) -> Bool { false }

    package func check() throws(StoreError) {
        try transaction { _ in ([PostgresConnection.Call(.probe)], ()) }
    }
}
