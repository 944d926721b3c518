/// Every statement, prepared once. A schema that lacks something fails here, at opening, and not at the
/// first command that needs it.
final class Statements {
    let begin, beginWrite, commit, rollback: Statement

    let room, roomHead, putRoom, updateRoom: Statement
    let participant, putParticipant, removeParticipant: Statement
    let answer, insertAnswer: Statement
    let insertOutbox, removeOutbox, outboxPage, oldestOutbox: Statement

    let definition, definitionsByDigest, insertDefinition, countDefinition, removeUnusedDefinition: Statement

    let livePage, overduePage, overdueLivePage, participantPage: Statement

    let putLeftover, leftovers, leftoverRows, removeLeftover: Statement
    let oldAnswers, removeAnswer: Statement
    let idleRooms: Statement
    let forgottenAttempts, forgottenRuns: Statement

    let removeSpentRuns, markCrashedRuns, putRun, crashedRuns, removeRun, removeRunAttempts: Statement
    let putAttempt, countAttempts, removeAttempts: Statement

    let probe: Statement

    init(_ connection: Connection) throws(StoreError) {
        begin = try connection.statement("BEGIN")
        beginWrite = try connection.statement("BEGIN IMMEDIATE")
        commit = try connection.statement("COMMIT")
        rollback = try connection.statement("ROLLBACK")

        room = try connection.statement(
            "SELECT \(RoomRow.columns), idle_since FROM rooms WHERE id = ?1")
        roomHead = try connection.statement(
            """
            SELECT version, session, phase, definition, session_definition, idle_since
            FROM rooms WHERE id = ?1
            """)
        putRoom = try connection.statement(RoomRow.put)
        updateRoom = try connection.statement(RoomRow.update)

        participant = try connection.statement(
            "SELECT role, joined_at FROM participants WHERE room = ?1 AND session = ?2 AND user = ?3")
        putParticipant = try connection.statement(
            """
            INSERT OR REPLACE INTO participants (room, session, user, role, joined_at)
            VALUES (?1, ?2, ?3, ?4, ?5)
            """)
        removeParticipant = try connection.statement(
            "DELETE FROM participants WHERE room = ?1 AND session = ?2 AND user = ?3")

        answer = try connection.statement(
            "SELECT canonical, reply, position FROM answers WHERE room = ?1 AND id = ?2")
        insertAnswer = try connection.statement(
            """
            INSERT INTO answers (room, id, session, at, position, canonical, reply)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """)

        insertOutbox = try connection.statement(
            """
            INSERT INTO outbox (format, room, sequence, type, message_id, timestamp, body, trace)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            """)
        removeOutbox = try connection.statement("DELETE FROM outbox WHERE position BETWEEN ?1 AND ?2")
        outboxPage = try connection.statement(
            """
            SELECT position, format, room, sequence, type, message_id, timestamp, body, trace
            FROM outbox WHERE position > ?1 ORDER BY position LIMIT ?2
            """)
        oldestOutbox = try connection.statement("SELECT timestamp FROM outbox ORDER BY position LIMIT 1")

        definition = try connection.statement("SELECT text FROM definitions WHERE id = ?1")
        definitionsByDigest = try connection.statement("SELECT id, text FROM definitions WHERE digest = ?1")
        insertDefinition = try connection.statement(
            "INSERT INTO definitions (digest, uses, text) VALUES (?1, 0, ?2)")
        countDefinition = try connection.statement(
            "UPDATE definitions SET uses = uses + ?2 WHERE id = ?1")
        removeUnusedDefinition = try connection.statement(
            "DELETE FROM definitions WHERE id = ?1 AND uses = 0")

        livePage = try connection.statement(
            "SELECT \(RoomRow.columns) FROM rooms WHERE phase < 2 AND id >= ?1 ORDER BY id")
        // Along the table itself, as by the index of live rooms each row would be looked up again; by that index where
        // few rooms live.
        overduePage = try connection.statement(
            "SELECT id, due_at, phase < 2 FROM rooms WHERE id >= ?1 ORDER BY id LIMIT ?2")
        overdueLivePage = try connection.statement(
            "SELECT id, due_at, 1 FROM rooms WHERE phase < 2 AND id >= ?1 ORDER BY id LIMIT ?2")
        participantPage = try connection.statement(
            """
            SELECT user, role, joined_at FROM participants
            WHERE room = ?1 AND session = ?2 AND user >= ?3
              AND EXISTS (SELECT 1 FROM rooms WHERE id = ?1 AND session = ?2 AND phase < 2)
            ORDER BY user LIMIT ?4
            """)

        putLeftover = try connection.statement(
            """
            INSERT INTO leftovers (room, below) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET below = max(below, ?2)
            """)
        leftovers = try connection.statement("SELECT room, below FROM leftovers LIMIT 1")
        leftoverRows = try connection.statement(
            "SELECT session, user FROM participants WHERE room = ?1 AND session < ?2 LIMIT ?3")
        removeLeftover = try connection.statement("DELETE FROM leftovers WHERE room = ?1")
        oldAnswers = try connection.statement(
            """
            SELECT at, number, EXISTS (
                SELECT 1 FROM rooms
                WHERE rooms.id = answers.room AND rooms.session = answers.session AND rooms.phase < 2)
            FROM answers WHERE number > ?1 ORDER BY number LIMIT ?2
            """)
        removeAnswer = try connection.statement("DELETE FROM answers WHERE number = ?1")
        idleRooms = try connection.statement(
            "SELECT id FROM rooms WHERE idle_since < ?1 ORDER BY idle_since, id LIMIT ?2")
        forgottenAttempts = try connection.statement(
            "DELETE FROM attempts WHERE run IN (SELECT id FROM runs WHERE crashed_at < ?1)")
        forgottenRuns = try connection.statement("DELETE FROM runs WHERE crashed_at < ?1")

        removeSpentRuns = try connection.statement(
            """
            DELETE FROM runs WHERE crashed_at IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.run = runs.id)
            """)
        markCrashedRuns = try connection.statement(
            "UPDATE runs SET crashed_at = ?2 WHERE crashed_at IS NULL AND id <> ?1")
        putRun = try connection.statement(
            """
            INSERT INTO runs (id, pid, host, started_at) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET crashed_at = NULL
            """)
        crashedRuns = try connection.statement(
            "SELECT id FROM runs WHERE crashed_at IS NOT NULL ORDER BY started_at, id")
        removeRun = try connection.statement("DELETE FROM runs WHERE id = ?1")
        removeRunAttempts = try connection.statement("DELETE FROM attempts WHERE run = ?1")
        putAttempt = try connection.statement("INSERT OR IGNORE INTO attempts (key, run) VALUES (?1, ?2)")
        countAttempts = try connection.statement(
            """
            SELECT count(*) FROM attempts JOIN runs ON runs.id = attempts.run
            WHERE attempts.key = ?1 AND runs.crashed_at IS NOT NULL
            """)
        removeAttempts = try connection.statement("DELETE FROM attempts WHERE key = ?1")

        probe = try connection.statement("UPDATE probes SET count = count + 1 WHERE id = 1")
    }
}
