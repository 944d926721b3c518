import FoundationEssentials
import Glibc
import RoomCore
import Testing

@testable import Store

@Suite("plans of PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresPlanTests {
    /// Tables that grow. Those of runs and attempts hold a few rows.
    private static let growing = ["rooms", "participants", "answers", "outbox", "leftovers"]
    /// Those that look along a whole table by their nature: a worker's look for what others left, every few seconds, and what
    /// a limit ends.
    private static let searches: Set<PostgresStatement> = [
        .inherit, .countLive, .countOutbox, .oldestOutbox, .leftovers,
    ]

    private func fill(_ session: OtherSession) throws {
        try session.execute(
            """
            SET search_path = overtime;
            INSERT INTO rooms (id, version, sequence, session, is_open, connected, changed_at, started_at, ends_at,
                extensions, announced, definition, phase, due_at)
            SELECT convert_to('room ' || n, 'UTF8'), 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, repeat('d', 300), n % 3, 1
            FROM generate_series(1, 20000) AS n;
            INSERT INTO participants SELECT convert_to('room ' || n, 'UTF8'), 1, 'ann', 1, 0
            FROM generate_series(1, 20000) AS n;
            INSERT INTO answers (room, id, session, at, canonical, reply)
            SELECT convert_to('room ' || n, 'UTF8'), convert_to('key ' || n, 'UTF8'), 1, 0, 'c', 'r'
            FROM generate_series(1, 20000) AS n;
            INSERT INTO outbox SELECT n, 'run', 1, convert_to('room ' || n, 'UTF8'), 1, 't', 'm', 0, repeat('b', 300)::bytea
            FROM generate_series(1, 20000) AS n;
            INSERT INTO leftovers SELECT convert_to('room ' || n, 'UTF8'), 1 FROM generate_series(1, 20000) AS n;
            """)
    }

    /// The plan that is made once for any parameters, as a store's connection makes it.
    private func plan(_ statement: PostgresStatement, _ connection: PostgresConnection) throws -> [String] {
        let name = "p_\(statement.rawValue)".lowercased()
        try connection.execute("PREPARE \(name) AS \(statement.sql)")
        let parameters = try connection.ask(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = '\(name)'")
        let nulls = [String](repeating: "NULL", count: Int(parameters.integer(0, 0)))
        let list = nulls.isEmpty ? "" : "(\(nulls.joined(separator: ", ")))"
        let lines = try connection.ask("EXPLAIN EXECUTE \(name)\(list)")
        return (0..<lines.count).map { lines.text($0, 0) ?? "" }
    }

    enum Tables: String, CaseIterable { case empty, foundEmpty, filled, known }

    /// Scans of tables that grow which go along no condition: each line with what stands below it.
    private func scans(in lines: [String]) -> [String] {
        lines.indices.compactMap { index in
            let line = lines[index]
            guard line.contains("Scan"), !line.contains("Bitmap Heap Scan"),
                Self.growing.contains(where: { line.contains(" on \($0)") || line.contains("using \($0)") })
            else { return nil }
            let below = lines[(index + 1)...].prefix { !$0.contains("Scan") }
            return below.contains { $0.contains("Index Cond") || $0.contains("TID Cond") } ? nil : line
        }
    }

    @Test("every statement goes along indexes, whatever is known of the tables", arguments: Tables.allCases)
    func indexes(_ tables: Tables) throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        defer { store.close() }
        let session = try OtherSession(database.url)
        if tables == .foundEmpty { try session.execute("VACUUM ANALYZE") }
        if tables == .filled || tables == .known { try fill(session) }
        if tables == .known { try session.execute("VACUUM ANALYZE") }
        let connection = try PostgresConnection(PostgresURL(database.url))
        _ = try connection.ask(PostgresSession.settings)
        let withoutPlan: Set<PostgresStatement> = [.begin, .commit, .rollback]
        for statement in PostgresStatement.allCases where !withoutPlan.contains(statement) {
            let lines = try plan(statement, connection)
            let text = lines.joined(separator: "\n")
            #expect(
                scans(in: lines).isEmpty || Self.searches.contains(statement),
                "\(statement.rawValue):\n\(text)")
            // Else one of a thousand users costs what all of them cost.
            if statement == .loadParticipants {
                let key = ["Index Cond", "(room = ", "(session = ", "(name = "]
                #expect(lines.contains { line in key.allSatisfy { line.contains($0) } }, "\(text)")
            }
            if let path = ProcessInfo.processInfo.environment["PLANS"] {
                let file = fopen("\(path)-\(tables)", "a")
                fputs("== \(statement.rawValue)\n\(statement.sql)\n\(text)\n", file)
                fclose(file)
            }
        }
    }

    /// By its count of rows that scans of an index gave.
    private func rowsRead(_ session: OtherSession) throws -> Int {
        // What a session counted is told to others once a second at most, and when it is asked to.
        try session.execute("SELECT pg_stat_clear_snapshot()")
        let count = try session.execute(
            "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('rooms', 'participants')")
        return count.flatMap { Int($0) } ?? 0
    }

    @Test("a store that began on empty tables does not go through them when they have grown")
    func growth() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        let session = try OtherSession(database.url)
        for table in ["rooms", "participants", "outbox"] {
            try session.execute("ALTER TABLE overtime.\(table) SET (autovacuum_enabled = off)")
        }
        try session.execute("VACUUM ANALYZE")
        let people = (0..<500).map { Participant(user: UserID("\($0)"), role: .viewer, joinedAt: .noon) }
        try store.put(.running("full", connected: 500), participants: people)
        func change(_ numbers: Range<Int>) throws {
            let state = try store.load(BatchRequest(rooms: numbers.map { RoomID("\($0)") } + ["full"]))
            var batch = BatchCommit()
            for (id, stored) in state.rooms {
                let room = Room.running(id, connected: 400, sequence: stored.room.sequence + 1)
                batch.rooms.append(RoomWrite(room: room, expectedVersion: stored.version, isChanged: true))
                batch.outbox.append(draft(id, room.sequence))
            }
            let left = UserID("\(numbers.lowerBound)")
            batch.participants = [ParticipantWrite(room: "full", session: 1, change: .left(left))]
            _ = try store.commit(batch)
        }
        for step in 0..<8 { try change((step * 500)..<((step + 1) * 500)) }
        for _ in 0..<3 { try change(0..<10) }
        usleep(1_100_000)
        try change(0..<10)
        let before = try rowsRead(session)
        usleep(1_100_000)
        try change(0..<10)
        let after = try rowsRead(session)
        #expect(after - before < 200, "\(after - before) rows")
    }
}
