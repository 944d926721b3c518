/// The tables, as numbered migrations. A migration that was released is never changed: add the next one.
///
/// Identifiers are TEXT compared byte by byte (BINARY), as they are equal in the program. Instants are
/// milliseconds since 1970, UTC.
///
/// A check of three values is written BETWEEN: for `IN` with more than two SQLite makes a temporary table at
/// each row it writes, which cost as much as the row.
enum Schema {
    /// "OVRT": tells this program's databases from others' before anything is written.
    static let applicationID: Int64 = 0x4F56_5254

    /// Migration n makes schema n of schema n − 1.
    static let migrations: [String] = [rooms, traces, fewerIndexes]

    /// `rooms` holds everything that an ordinary command changes, in one row. Definitions stand beside it,
    /// each text once with a count of its uses, because they are long, mostly alike and rarely change.
    ///
    /// - `phase`: 0 waiting, 1 running, 2 ended; with all columns of the session NULL before the first
    ///   session and after pruning. `cause`: 0 elapsed, 1 destroyed. `extender_kind`: 0 user, 1 operator.
    /// - `due_at` is NULL unless the session runs; `idle_since` unless the room may be pruned.
    /// - `leftovers`: rooms with participant rows below a session number that wait to be pruned, so that the
    ///   end of a session costs the same however many were connected.
    private static let rooms = """
        CREATE TABLE definitions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            digest INTEGER NOT NULL,
            uses INTEGER NOT NULL CHECK (uses >= 0),
            text TEXT NOT NULL
        ) STRICT;
        CREATE INDEX definitions_by_digest ON definitions (digest);

        CREATE TABLE rooms (
            id TEXT NOT NULL PRIMARY KEY,
            version INTEGER NOT NULL CHECK (version > 0),
            sequence INTEGER NOT NULL CHECK (sequence >= 0),
            session INTEGER NOT NULL CHECK (session >= 0),
            is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
            definition INTEGER,
            session_definition INTEGER,
            phase INTEGER CHECK (phase BETWEEN 0 AND 2),
            connected INTEGER CHECK (connected >= 0),
            changed_at INTEGER,
            started_at INTEGER,
            ends_at INTEGER,
            extensions INTEGER CHECK (extensions >= 0),
            announced INTEGER CHECK (announced >= 0),
            extender_kind INTEGER CHECK (extender_kind IN (0, 1)),
            extended_by TEXT,
            ended_at INTEGER,
            cause INTEGER CHECK (cause IN (0, 1)),
            due_at INTEGER,
            idle_since INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX rooms_live ON rooms (id) WHERE phase < 2;
        CREATE INDEX rooms_due ON rooms (due_at, id) WHERE due_at IS NOT NULL;
        CREATE INDEX rooms_idle ON rooms (idle_since, id) WHERE idle_since IS NOT NULL;

        CREATE TABLE participants (
            room TEXT NOT NULL,
            session INTEGER NOT NULL,
            user TEXT NOT NULL,
            role INTEGER NOT NULL CHECK (role BETWEEN 0 AND 2),
            joined_at INTEGER NOT NULL,
            PRIMARY KEY (room, session, user)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE leftovers (
            room TEXT NOT NULL PRIMARY KEY,
            below INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE answers (
            number INTEGER PRIMARY KEY,
            room TEXT NOT NULL,
            id TEXT NOT NULL,
            session INTEGER NOT NULL,
            at INTEGER NOT NULL,
            position INTEGER,
            canonical BLOB NOT NULL,
            reply BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX answers_by_key ON answers (room, id);
        CREATE INDEX answers_by_time ON answers (at);

        CREATE TABLE outbox (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            format INTEGER NOT NULL,
            room TEXT NOT NULL,
            sequence INTEGER NOT NULL,
            type TEXT NOT NULL,
            message_id TEXT NOT NULL,
            timestamp INTEGER NOT NULL,
            body BLOB NOT NULL
        ) STRICT;

        CREATE TABLE runs (
            id TEXT NOT NULL PRIMARY KEY,
            pid INTEGER NOT NULL,
            host TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            crashed_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE attempts (
            key TEXT NOT NULL,
            run TEXT NOT NULL,
            PRIMARY KEY (key, run)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX attempts_by_run ON attempts (run);

        CREATE TABLE probes (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            count INTEGER NOT NULL
        ) STRICT;
        INSERT INTO probes (id, count) VALUES (1, 0);
        """

    /// The trace that an event belongs to, for its header; NULL for none.
    private static let traces = "ALTER TABLE outbox ADD COLUMN trace TEXT;"

    /// Each of these cost every command a page or two that was written somewhere at random. Overdue rooms are looked for
    /// room by room, at the start and after a failure only; old answers are those with the lowest numbers.
    private static let fewerIndexes = "DROP INDEX rooms_due; DROP INDEX answers_by_time;"
}
