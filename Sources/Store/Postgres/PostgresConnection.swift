import CPostgres
import Glibc
import RoomCore

/// One connection to a server, in pipeline mode: statements go out together and their answers come back together, so that
/// what is asked costs a round trip and not one for each statement.
///
/// Nothing waits without a limit: connecting takes `connect_timeout` a host; a server that says nothing for
/// `silence` is given up, whatever it is doing, and the kernel gives up a peer that acknowledges nothing.
final class PostgresConnection {
    /// One statement of a pipeline.
    struct Call {
        let statement: PostgresStatement
        let parameters: Parameters

        init(_ statement: PostgresStatement, _ fill: (inout Parameters) -> Void = { _ in }) {
            self.statement = statement
            var parameters = Parameters()
            fill(&parameters)
            self.parameters = parameters
        }
    }

    /// A statement's failure, as the server told it; the connection is fine, the transaction is not.
    struct Failure {
        let code: String
        let text: String
        let statement: PostgresStatement?
    }

    let server: String
    private let connection: OpaquePointer
    /// What the server refused last; nil where the last call went well, and where the connection is over.
    private(set) var failure: Failure?
    /// How many round trips were made, and how many statements were sent: what a cost is compared by.
    private(set) var roundTrips = 0
    private(set) var statements = 0

    /// Milliseconds without a word from the server after which it is given up; longer than its own time limits.
    static let silence: Int32 = 40_000
    private let silence: Int32

    /// Settings of the connection that a URL may change; milliseconds where it is `tcp_user_timeout`, else seconds.
    private static let defaults: KeyValuePairs<String, String> = [
        "connect_timeout": "5", "keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2",
        "keepalives_count": "3", "tcp_user_timeout": "10000", "target_session_attrs": "read-write",
        "application_name": "overtime worker", "client_encoding": "UTF8",
    ]

    /// Connects; blocks for at most `connect_timeout` a host.
    init(_ url: PostgresURL, silence: Int32 = PostgresConnection.silence) throws(StoreError) {
        server = url.name
        self.silence = silence
        let keywords = Self.defaults.map(\.key) + ["dbname"]
        let values = Self.defaults.map(\.value) + [url.text]
        let opened = Self.withStrings(keywords) { keywords in
            Self.withStrings(values) { values in PQconnectdbParams(keywords, values, 1) }
        }
        guard let opened else { throw .unreachable(server: server, "out of memory") }
        connection = opened
        guard PQstatus(opened) == CONNECTION_OK else {
            let text = Self.oneLine(PQerrorMessage(opened))
            // The code of a failed login is told in words only.
            let isDenied = [
                "authentication failed", "no password supplied", "no pg_hba.conf entry", "does not exist",
            ]
            .contains { text.contains($0) }
            throw isDenied ? .denied(server: url.name, text) : .unreachable(server: url.name, text)
        }
        PQsetNoticeProcessor(opened, { _, _ in }, nil)
        guard PQsetnonblocking(opened, 1) == 0 else {
            throw .unreachable(server: url.name, Self.oneLine(PQerrorMessage(opened)))
        }
    }

    deinit { PQfinish(connection) }

    // MARK: Running

    /// Runs prepared statements in one round trip. Their answers, in order; the first failure ends it.
    func run(_ calls: [Call]) throws(StoreError) -> [Answer] {
        failure = nil
        for call in calls {
            statements += 1
            guard send(call) else { throw lost() }
        }
        return try finish(calls.map(\.statement))
    }

    // MARK: Setting up

    /// Asks one statement that is not prepared; only before `prepareAll`.
    func ask(
        _ sql: String, _ fill: (inout Parameters) -> Void = { _ in }
    ) throws(StoreError) -> Answer {
        var parameters = Parameters()
        fill(&parameters)
        let isSent = Self.withValues(parameters) { count, values, lengths, formats in
            PQsendQueryParams(connection, sql, count, nil, values, lengths, formats, 1) == 1
        }
        guard isSent else { throw lost() }
        guard let answer = try collect().last else { throw lost("the server gave no answer") }
        return answer
    }

    /// Runs a script, such as a migration's; only before `prepareAll`.
    func execute(_ script: String) throws(StoreError) {
        guard PQsendQuery(connection, script) == 1 else { throw lost() }
        _ = try collect()
    }

    private func collect() throws(StoreError) -> [Answer] {
        roundTrips += 1
        self.failure = nil
        var answers: [Answer] = []
        var failure: Failure?
        while let result = try next() {
            if let found = try take(result, &answers, statement: nil) { failure = failure ?? found }
        }
        if let failure { throw refused(failure) }
        return answers
    }

    /// Begins the pipeline and prepares every statement, in one round trip.
    func prepareAll() throws(StoreError) {
        guard PQenterPipelineMode(connection) == 1 else { throw lost() }
        for statement in PostgresStatement.allCases {
            guard PQsendPrepare(connection, statement.rawValue, statement.sql, 0, nil) == 1 else {
                throw lost()
            }
        }
        _ = try finish(PostgresStatement.allCases)
    }

    private func send(_ call: Call) -> Bool {
        Self.withValues(call.parameters) { count, values, lengths, formats in
            PQsendQueryPrepared(
                connection, call.statement.rawValue, count, values, lengths, formats, 1) == 1
        }
    }

    /// Parameters as libpq takes them.
    private static func withValues(
        _ parameters: Parameters, _ body: (Int32, [UnsafePointer<CChar>?], [Int32], [Int32]) -> Bool
    ) -> Bool {
        let lengths = parameters.ranges.map { Int32(truncatingIfNeeded: $0?.count ?? 0) }
        let formats = [Int32](repeating: 1, count: lengths.count)
        // One byte more, so that an empty value at the end has an address too.
        return (parameters.bytes + [0]).withUnsafeBufferPointer { bytes in
            let base = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
            let values = parameters.ranges.map { range in range.flatMap { base?.advanced(by: $0.lowerBound) }
            }
            return body(Int32(lengths.count), values, lengths, formats)
        }
    }

    /// Ends the pipeline and collects what came of each statement.
    private func finish(_ sent: [PostgresStatement]) throws(StoreError) -> [Answer] {
        guard PQpipelineSync(connection) == 1 else { throw lost() }
        roundTrips += 1
        var answers: [Answer] = []
        var failure: Failure?
        var ends = 0
        while true {
            guard let result = try next() else {
                // One stands behind each statement's result, and two in a row behind none.
                ends += 1
                guard ends < 2 else { throw lost("the server's answers ended too early") }
                continue
            }
            ends = 0
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC:
                PQclear(result)
                if let failure { throw refused(failure) }
                return answers
            case PGRES_PIPELINE_ABORTED:
                PQclear(result)
            default:
                let statement = sent.indices.contains(answers.count) ? sent[answers.count] : nil
                if let found = try take(result, &answers, statement: statement) { failure = failure ?? found }
            }
        }
    }

    /// Keeps an answer, or says what is wrong with it.
    private func take(
        _ result: OpaquePointer, _ answers: inout [Answer], statement: PostgresStatement?
    ) throws(StoreError) -> Failure? {
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK:
            answers.append(Answer(result))
            return nil
        default:
            defer { PQclear(result) }
            let code = PQresultErrorField(result, CInt(UInt8(ascii: "C"))).map { String(cString: $0) } ?? ""
            let text = Self.oneLine(PQresultErrorField(result, CInt(UInt8(ascii: "M"))))
            guard PQstatus(connection) == CONNECTION_OK else {
                throw lost(text.isEmpty ? nil : text)
            }
            return Failure(code: code, text: text, statement: statement)
        }
    }

    /// The next result, nil at the end of a statement's.
    private func next() throws(StoreError) -> OpaquePointer? {
        while true {
            let flushed = PQflush(connection)
            guard flushed >= 0 else { throw lost() }
            if PQisBusy(connection) == 0 { return PQgetResult(connection) }
            var descriptor = pollfd(
                fd: PQsocket(connection), events: Int16(flushed == 1 ? POLLIN | POLLOUT : POLLIN), revents: 0)
            guard descriptor.fd >= 0 else { throw lost("the connection is closed") }
            let ready = poll(&descriptor, 1, silence)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { throw lost("the server said nothing for \(silence / 1_000) s") }
            guard PQconsumeInput(connection) == 1 else { throw lost() }
        }
    }

    private func lost(_ text: String? = nil) -> StoreError {
        .unreachable(server: server, text ?? Self.oneLine(PQerrorMessage(connection)))
    }

    private func refused(_ failure: Failure) -> StoreError {
        self.failure = failure
        return SQLState.error(failure.code, failure.text, server: server)
    }

    // MARK: Text

    private static func oneLine(_ text: UnsafePointer<CChar>?) -> String {
        let words = text.map { String(cString: $0) } ?? ""
        return words.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// C strings with a NULL behind the last one.
    private static func withStrings<Result>(
        _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        let copies = strings.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        let pointers = copies.map { UnsafePointer($0) } + [nil]
        return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
