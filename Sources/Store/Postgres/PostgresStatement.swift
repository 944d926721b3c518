/// Every statement, prepared once a connection. A schema that lacks something fails there, and not at the first command
/// that needs it.
///
/// Each takes a batch of any size: lists come as arrays. Rows are locked in byte order of their ids, so that two
/// workers never wait for each other in a circle.
///
/// A plan is made once, perhaps while the tables are empty, and must be right for millions of rows. So none is left a
/// choice: rows are found one by one along their key (`LATERAL … OFFSET 0`, `ON CONFLICT`, `ctid = ANY`), never by a join
/// that could as well go through a table.
enum PostgresStatement: String, CaseIterable {
    case begin, relax, commit, rollback, now, unfinishedMove
    case loadRooms, loadParticipants, loadAnswers, loadUnsent
    case lockRooms, nextPositions, updateRooms, replaceRooms, insertRooms
    case putLeftovers, putParticipants, removeParticipants
    case insertOutbox, insertAnswers, removeOutbox, removeAttempts
    case unpublished, lockInheritance, inheritAll, inherit
    case livePage, participantPage, overduePage, overdueLivePage
    case tryPruneLock, oldAnswers, removeAnswers, leftovers, pruneParticipants, removeLeftovers
    case idleRooms, emptyRooms, forgottenAttempts, forgottenRuns
    case removeSpentRuns, neighbours, endLeases, markCrashedRuns, putRun, crashedRuns
    case removeRunAttempts, removeRun, renewLease, members, releaseLease
    case putAttempts, countAttempts
    case countLive, countOutbox, oldestOutbox, size, probe

    /// Milliseconds since 1970 by the server's clock, rounded down: nothing is due before its time.
    private static let clock = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// The columns of a room that an ordinary command changes.
    private static let hot = """
        sequence, session, is_open, connected, changed_at, started_at, ends_at, extensions, announced, extender_kind, \
        extended_by, ended_at, cause, due_at
        """
    private static let cold = "definition, session_definition, phase, idle_since"
    private static let roomColumns = "id, version, \(hot), \(cold)"

    /// $1 ids, $2 versions, then a list for each of `hot`.
    private static let hotRows = """
        unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bigint[], \
        $15::bigint[], $16::bigint[]) AS u(id, version, \(hot))
        """
    /// As `hotRows`, then a list for each of `cold`.
    private static let allRows = """
        unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bigint[], \
        $15::bigint[], $16::bigint[], $17::text[], $18::text[], $19::bigint[], $20::bigint[]) \
        AS u(id, version, \(hot), \(cold))
        """
    private static let setHot = """
        version = excluded.version, sequence = excluded.sequence, session = excluded.session, \
        is_open = excluded.is_open, connected = excluded.connected, changed_at = excluded.changed_at, \
        started_at = excluded.started_at, ends_at = excluded.ends_at, extensions = excluded.extensions, \
        announced = excluded.announced, extender_kind = excluded.extender_kind, \
        extended_by = excluded.extended_by, ended_at = excluded.ended_at, cause = excluded.cause, \
        due_at = excluded.due_at
        """
    private static let outboxColumns =
        "position, format, room, sequence, type, message_id, timestamp, body, trace"

    /// A run that holds a lease; $1 is not used by it. One from the future, which a wrong clock left, is over as well.
    private static func holdsLease(_ run: String) -> String {
        "\(run).shards > 0 AND abs(\(run).seen_at - \(clock)) < \(Lease.length)"
    }

    /// Whether a run may still come back: it holds a lease, or has given it up not long ago.
    private static func mayLive(_ run: String) -> String {
        """
        abs(\(run).seen_at - \(clock)) < CASE WHEN \(run).shards > 0 THEN \(Lease.length) ELSE \(Lease.patience) END
        """
    }

    /// An event of a run without a lease, the run $1 left out. The runs are asked once, and not for each event.
    private static let isOrphaned = """
        o.owner <> $1 AND o.owner NOT IN (SELECT r.id FROM runs r WHERE \(holdsLease("r")))
        """

    var sql: String {
        switch self {
        case .begin: "BEGIN"
        // What may be done again if the server loses it does not wait for the disk.
        case .relax: "SELECT set_config('synchronous_commit', 'off', true)"
        case .commit: "COMMIT"
        case .rollback: "ROLLBACK"
        case .now: "SELECT \(Self.clock)"
        case .unfinishedMove: "SELECT source FROM moves WHERE finished_at IS NULL"

        // MARK: A batch
        case .loadRooms: "SELECT \(Self.roomColumns) FROM rooms WHERE id = ANY ($1::bytea[])"
        case .loadParticipants:
            """
            SELECT k.room, k.name, p.role, p.joined_at
            FROM unnest($1::bytea[], $2::bytea[]) AS k(room, name)
            CROSS JOIN LATERAL (SELECT session FROM rooms WHERE id = k.room AND phase < 2 OFFSET 0) AS r
            CROSS JOIN LATERAL (
                SELECT role, joined_at FROM participants
                WHERE room = k.room AND session = r.session AND name = k.name OFFSET 0) AS p
            """
        case .loadAnswers:
            """
            SELECT k.room, k.id, a.canonical, a.reply, a.position
            FROM unnest($1::bytea[], $2::bytea[]) AS k(room, id)
            CROSS JOIN LATERAL (
                SELECT canonical, reply, position FROM answers WHERE room = k.room AND id = k.id OFFSET 0) AS a
            """
        case .loadUnsent:
            """
            SELECT o.* FROM unnest($1::bytea[]) AS k(id)
            CROSS JOIN LATERAL (
                SELECT \(Self.outboxColumns) FROM outbox WHERE room = k.id AND owner <> $2 OFFSET 0) AS o
            ORDER BY o.position
            """
        case .lockRooms:
            """
            SELECT id, version, session, phase FROM rooms WHERE id = ANY ($1::bytea[]) ORDER BY id FOR UPDATE
            """
        case .nextPositions: "SELECT nextval('positions') FROM generate_series(1, $1::bigint)"
        case .updateRooms:
            """
            INSERT INTO rooms (id, version, \(Self.hot)) SELECT id, version + 1, \(Self.hot) FROM \(Self.hotRows)
            ON CONFLICT (id) DO UPDATE SET \(Self.setHot)
            """
        case .replaceRooms:
            """
            INSERT INTO rooms (\(Self.roomColumns))
            SELECT id, version + 1, \(Self.hot), \(Self.cold) FROM \(Self.allRows)
            ON CONFLICT (id) DO UPDATE SET \(Self.setHot), definition = excluded.definition,
                session_definition = excluded.session_definition, phase = excluded.phase, idle_since = excluded.idle_since
            """
        case .insertRooms:
            """
            INSERT INTO rooms (\(Self.roomColumns))
            SELECT id, version + 1, \(Self.hot), \(Self.cold) FROM \(Self.allRows)
            """
        case .putLeftovers:
            """
            INSERT INTO leftovers (room, below) SELECT * FROM unnest($1::bytea[], $2::bigint[])
            ON CONFLICT (room) DO UPDATE SET below = greatest(leftovers.below, excluded.below)
            """
        case .putParticipants:
            """
            INSERT INTO participants (room, session, name, role, joined_at)
            SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[])
            ON CONFLICT (room, session, name) DO UPDATE SET role = excluded.role, joined_at = excluded.joined_at
            """
        case .removeParticipants:
            """
            DELETE FROM participants WHERE ctid = ANY (ARRAY(
                SELECT p.ctid FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS k(room, session, name)
                CROSS JOIN LATERAL (
                    SELECT ctid FROM participants
                    WHERE room = k.room AND session = k.session AND name = k.name OFFSET 0) AS p))
            """
        case .insertOutbox:
            """
            INSERT INTO outbox (owner, \(Self.outboxColumns))
            SELECT $1, u.* FROM unnest(
                $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::text[], $7::bytea[], $8::bigint[],
                $9::bytea[], $10::text[]) AS u(\(Self.outboxColumns))
            """
        case .insertAnswers:
            """
            INSERT INTO answers (room, id, session, at, position, canonical, reply)
            SELECT * FROM unnest(
                $1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[])
            """
        case .removeOutbox: "DELETE FROM outbox WHERE position = ANY ($1::bigint[])"
        case .removeAttempts: "DELETE FROM attempts WHERE key = ANY ($1::text[])"

        // MARK: The outbox
        case .unpublished:
            """
            SELECT \(Self.outboxColumns) FROM outbox WHERE position > $2 AND owner = $1 ORDER BY position LIMIT $3
            """
        case .lockInheritance: "SELECT pg_advisory_xact_lock(\(PostgresSchema.lock), 2)"
        // What is taken over is everything of a room, so that its order cannot be split between two workers.
        case .inheritAll:
            """
            WITH found AS MATERIALIZED (
                SELECT o.position, o.room FROM outbox o WHERE o.position > $2 AND \(Self.isOrphaned)
                ORDER BY o.position LIMIT $3::bigint
            ), taken AS (
                UPDATE outbox SET owner = $1 WHERE room = ANY (ARRAY(SELECT room FROM found)) AND owner <> $1)
            SELECT max(position) FROM found
            """
        case .inherit:
            """
            WITH taken AS (
                UPDATE outbox SET owner = $1 WHERE owner <> $1 AND room = ANY (ARRAY(
                    SELECT o.room FROM outbox o WHERE \(Self.isOrphaned) ORDER BY o.position LIMIT $2::bigint))
                RETURNING \(Self.outboxColumns))
            SELECT \(Self.outboxColumns) FROM taken ORDER BY position
            """

        // MARK: Pages
        case .livePage:
            """
            SELECT \(Self.roomColumns) FROM rooms WHERE phase < 2 AND id >= $1 ORDER BY id LIMIT $2
            """
        case .participantPage:
            """
            SELECT p.name, p.role, p.joined_at FROM participants p
            WHERE p.room = $1 AND p.session = $2 AND p.name >= $3
              AND EXISTS (SELECT FROM rooms r WHERE r.id = $1 AND r.session = $2 AND r.phase < 2)
            ORDER BY p.name LIMIT $4
            """
        case .overduePage:
            "SELECT id, due_at, phase < 2 FROM rooms WHERE id >= $1 ORDER BY id LIMIT $2"
        case .overdueLivePage:
            """
            SELECT id, due_at, true FROM rooms WHERE phase < 2 AND id >= $1 ORDER BY id LIMIT $2
            """

        // MARK: Retention
        case .tryPruneLock: "SELECT pg_try_advisory_xact_lock(\(PostgresSchema.lock), 3)"
        case .oldAnswers:
            """
            SELECT a.at, a.number, r.kept FROM (
                SELECT at, number, room, session FROM answers WHERE number > $1 ORDER BY number LIMIT $2) AS a
            CROSS JOIN LATERAL (
                SELECT count(*) AS kept FROM (
                    SELECT FROM rooms WHERE id = a.room AND session = a.session AND phase < 2 OFFSET 0) AS found) AS r
            ORDER BY a.number
            """
        case .removeAnswers: "DELETE FROM answers WHERE number = ANY ($1::bigint[])"
        case .leftovers:
            "SELECT room, below FROM leftovers ORDER BY room LIMIT $1 FOR UPDATE SKIP LOCKED"
        case .pruneParticipants:
            """
            DELETE FROM participants WHERE ctid = ANY (ARRAY(
                SELECT p.ctid FROM unnest($1::bytea[], $2::bigint[]) AS l(room, below)
                CROSS JOIN LATERAL (
                    SELECT ctid FROM participants WHERE room = l.room AND session < l.below LIMIT $3::bigint) AS p
                LIMIT $3::bigint))
            """
        case .removeLeftovers:
            """
            DELETE FROM leftovers WHERE room = ANY (ARRAY(
                SELECT k.room FROM unnest($1::bytea[], $2::bigint[]) AS k(room, below)
                CROSS JOIN LATERAL (
                    SELECT count(*) AS rows FROM (
                        SELECT FROM participants WHERE room = k.room AND session < k.below LIMIT 1) AS found) AS p
                WHERE p.rows = 0))
            """
        case .idleRooms:
            """
            SELECT id FROM rooms WHERE idle_since < $1 ORDER BY idle_since, id LIMIT $2 FOR UPDATE SKIP LOCKED
            """
        case .emptyRooms:
            """
            UPDATE rooms SET version = version + 1, is_open = 0, connected = NULL, changed_at = NULL, started_at = NULL,
                ends_at = NULL, extensions = NULL, announced = NULL, extender_kind = NULL, extended_by = NULL,
                ended_at = NULL, cause = NULL, definition = NULL, session_definition = NULL, phase = NULL,
                due_at = NULL, idle_since = NULL
            WHERE id = ANY ($1::bytea[])
            """
        case .forgottenAttempts:
            "DELETE FROM attempts WHERE run IN (SELECT id FROM runs WHERE crashed_at < $1)"
        case .forgottenRuns: "DELETE FROM runs WHERE crashed_at < $1"

        // MARK: Runs and leases
        case .removeSpentRuns:
            """
            DELETE FROM runs r WHERE r.crashed_at IS NOT NULL AND r.id <> $1
              AND NOT EXISTS (SELECT FROM attempts a WHERE a.run = r.id)
            """
        case .neighbours:
            "SELECT id, pid FROM runs WHERE place = $2 AND id <> $1 AND crashed_at IS NULL"
        case .endLeases: "UPDATE runs SET seen_at = NULL WHERE id = ANY ($1::text[])"
        // Who is renewing at this moment has not crashed, and is not waited for: all may renew at once.
        case .markCrashedRuns:
            """
            UPDATE runs SET crashed_at = coalesce($2, \(Self.clock)) WHERE id = ANY (ARRAY(
                SELECT r.id FROM runs r
                WHERE r.crashed_at IS NULL AND r.id <> $1 AND (\(Self.mayLive("r"))) IS NOT TRUE
                FOR UPDATE SKIP LOCKED))
            """
        case .putRun:
            """
            INSERT INTO runs (id, pid, host, place, started_at) VALUES ($1, $2::bigint, $3, $4, $5)
            ON CONFLICT (id) DO UPDATE SET crashed_at = NULL
            """
        case .crashedRuns:
            "SELECT id FROM runs WHERE crashed_at IS NOT NULL ORDER BY started_at, id COLLATE \"C\""
        case .removeRunAttempts: "DELETE FROM attempts WHERE run = $1"
        case .removeRun: "DELETE FROM runs WHERE id = $1"
        case .renewLease:
            """
            INSERT INTO runs (id, pid, host, place, started_at, seen_at, shards, consumed, clock_offset)
            VALUES ($1, $2::bigint, $3, $4, $5, \(Self.clock), $6::bigint, $7, $8)
            ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, shards = excluded.shards,
                consumed = excluded.consumed, clock_offset = excluded.clock_offset, crashed_at = NULL
            """
        case .members:
            """
            SELECT r.id, r.pid, r.host, r.shards, r.consumed, r.clock_offset FROM runs r
            WHERE \(Self.holdsLease("r")) ORDER BY r.id COLLATE "C"
            """
        case .releaseLease: "UPDATE runs SET seen_at = \(Self.clock), shards = 0, consumed = '' WHERE id = $1"
        case .putAttempts:
            "INSERT INTO attempts (key, run) SELECT key, $2 FROM unnest($1::text[]) AS k(key) ON CONFLICT DO NOTHING"
        case .countAttempts:
            """
            SELECT a.key, count(*) FROM attempts a JOIN runs r ON r.id = a.run
            WHERE a.key = ANY ($1::text[]) AND r.crashed_at IS NOT NULL GROUP BY a.key
            """

        // MARK: Statistics
        case .countLive: "SELECT count(*) FROM (SELECT FROM rooms WHERE phase < 2 LIMIT $1) AS found"
        case .countOutbox: "SELECT count(*) FROM (SELECT FROM outbox LIMIT $1) AS found"
        case .oldestOutbox: "SELECT timestamp FROM outbox ORDER BY position LIMIT 1"
        case .size:
            """
            SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
            WHERE c.relnamespace = '\(PostgresSchema.name)'::regnamespace AND c.relkind = 'r'
            """
        case .probe: "UPDATE probes SET count = count + 1 WHERE id = 1"
        }
    }
}
