/// The tables on PostgreSQL, as numbered migrations in a schema of their own. A migration that was released is never
/// changed: add the next one.
///
/// Names are byte strings (bytea): equal and ordered as in the program. For people there are the views `live` and
/// `waiting_events`. Instants are milliseconds since 1970, UTC.
enum PostgresSchema {
    static let name = "overtime"

    /// Held while a migration runs, so that of several workers that start at once one makes the tables. "OVRT".
    static let lock = 0x4F56_5254

    /// Migration n makes schema n of schema n − 1.
    static let migrations: [String] = [first, moves]

    /// `rooms` holds a room in one row, its definitions as texts in it: what is long PostgreSQL keeps beside the row, and
    /// does not write again with a change of something else. `session_definition` is NULL where it is the
    /// room's. No index but those of the key and of what seldom changes, and room left in each page: an ordinary command
    /// then changes a row in place.
    ///
    /// - `outbox.owner` is the run that publishes a message; `leftovers` are rooms with participants of finished
    ///   sessions, for pruning.
    private static let first = """
        CREATE TABLE rooms (
            id bytea PRIMARY KEY,
            version bigint NOT NULL CHECK (version > 0),
            sequence bigint NOT NULL CHECK (sequence >= 0),
            session bigint NOT NULL CHECK (session >= 0),
            is_open smallint NOT NULL CHECK (is_open IN (0, 1)),
            connected bigint CHECK (connected >= 0),
            changed_at bigint,
            started_at bigint,
            ends_at bigint,
            extensions bigint CHECK (extensions >= 0),
            announced smallint CHECK (announced >= 0),
            extender_kind smallint CHECK (extender_kind IN (0, 1)),
            extended_by bytea,
            ended_at bigint,
            cause smallint CHECK (cause IN (0, 1)),
            definition text,
            session_definition text,
            phase smallint CHECK (phase BETWEEN 0 AND 2),
            due_at bigint,
            idle_since bigint
        ) WITH (fillfactor = 60);
        CREATE INDEX rooms_live ON rooms (id) WHERE phase < 2;
        CREATE INDEX rooms_idle ON rooms (idle_since, id) WHERE idle_since IS NOT NULL;

        CREATE TABLE participants (
            room bytea NOT NULL,
            session bigint NOT NULL,
            name bytea NOT NULL,
            role smallint NOT NULL CHECK (role BETWEEN 0 AND 2),
            joined_at bigint NOT NULL,
            PRIMARY KEY (room, session, name)
        );

        CREATE TABLE leftovers (
            room bytea PRIMARY KEY,
            below bigint NOT NULL
        );

        CREATE TABLE answers (
            number bigint GENERATED ALWAYS AS IDENTITY,
            room bytea NOT NULL,
            id bytea NOT NULL,
            session bigint NOT NULL,
            at bigint NOT NULL,
            position bigint,
            canonical bytea NOT NULL,
            reply bytea NOT NULL,
            PRIMARY KEY (room, id)
        );
        CREATE INDEX answers_by_number ON answers (number);

        CREATE SEQUENCE positions;
        CREATE TABLE outbox (
            position bigint PRIMARY KEY,
            owner text NOT NULL,
            format bigint NOT NULL,
            room bytea NOT NULL,
            sequence bigint NOT NULL,
            type text NOT NULL,
            message_id bytea NOT NULL,
            timestamp bigint NOT NULL,
            body bytea NOT NULL,
            trace text
        ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
        CREATE INDEX outbox_by_room ON outbox (room);

        CREATE TABLE runs (
            id text PRIMARY KEY,
            pid integer NOT NULL,
            host text NOT NULL,
            place text,
            started_at bigint NOT NULL,
            seen_at bigint,
            shards integer NOT NULL DEFAULT 1,
            consumed text NOT NULL DEFAULT '',
            clock_offset bigint NOT NULL DEFAULT 0,
            crashed_at bigint
        );
        CREATE TABLE attempts (
            key text NOT NULL,
            run text NOT NULL,
            PRIMARY KEY (key, run)
        );
        CREATE INDEX attempts_by_run ON attempts (run);

        CREATE TABLE probes (
            id smallint PRIMARY KEY CHECK (id = 1),
            count bigint NOT NULL
        );
        INSERT INTO probes (id, count) VALUES (1, 0);

        CREATE VIEW live AS
            SELECT convert_from(id, 'UTF8') AS room, session, CASE phase WHEN 0 THEN 'waiting' ELSE 'running' END AS state,
                connected, to_timestamp(started_at / 1000.0) AS started_at, to_timestamp(ends_at / 1000.0) AS ends_at,
                to_timestamp(due_at / 1000.0) AS due_at, extensions, sequence
            FROM rooms WHERE phase < 2;
        CREATE VIEW waiting_events AS
            SELECT position, convert_from(room, 'UTF8') AS room, sequence, type, owner,
                to_timestamp(timestamp) AS at, convert_from(body, 'UTF8') AS body
            FROM outbox ORDER BY position;
        """

    /// Where the rooms came from that a migration brought here (`StoreMove`), in one row. While it has no `finished_at`
    /// no worker is let in.
    private static let moves = """
        CREATE TABLE moves (
            id smallint PRIMARY KEY CHECK (id = 1),
            source text NOT NULL,
            fingerprint text NOT NULL,
            begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            finished_at timestamptz
        );
        """
}
