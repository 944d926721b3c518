import Glibc
import RoomCore
import Testing

@testable import Store

@Suite("opening a database on PostgreSQL", .enabled(if: PostgresServer.isThere))
struct PostgresOpeningTests {
    /// The error with which opening fails.
    private func failure(_ url: String) throws -> StoreError {
        try #require(#expect(throws: StoreError.self) { try PostgresStore(url: url) })
    }

    private func expect(_ error: StoreError, transient: Bool, says words: String...) {
        #expect(error.isTransient == transient && !error.isBatchFault, "\(error)")
        for word in words { #expect("\(error)".contains(word), "\(error)") }
        #expect(!"\(error)".contains("secret") && !"\(error)".contains("overtime:overtime"), "\(error)")
    }

    @Test("several that open an empty database at once all can use it")
    func atOnce() throws {
        let database = try PostgresDatabase()
        let stores = (0..<8).map { number in
            Blocking {
                let store = try database.open()
                try store.put(.running(RoomID("\(number)")))
                return Handed(value: store)
            }
        }
        let opened = try stores.map { try $0.value().value }
        #expect(try opened[0].liveRooms(after: nil, limit: 99).count == 8)
        let version = try OtherSession(database.url).rows("SELECT version FROM overtime.schema_version")
        #expect(version == ["\(PostgresSchema.migrations.count)"])
    }

    @Test("a later migration is made once, with what is there kept")
    func migration() throws {
        let database = try PostgresDatabase()
        try database.open().put(.running("a"))
        let next =
            PostgresSchema.migrations + [
                "CREATE TABLE more (n integer); INSERT INTO more VALUES (1)",
                "ALTER TABLE more ADD COLUMN m integer",
            ]
        let stores = (0..<4).map { _ in
            Blocking { Handed(value: try PostgresStore(url: database.url, migrations: next)) }
        }
        for store in stores { #expect(try store.value().value.stored("a").version == 1) }
        #expect(try database.execute("SELECT count(m) + count(*) FROM overtime.more") == "1")
        #expect(try failure(database.url) == .newerSchema(found: next.count, known: next.count - 2))
    }

    @Test("a migration that fails leaves the schema as it was")
    func failedMigration() throws {
        let database = try PostgresDatabase()
        let broken = PostgresSchema.migrations + ["CREATE TABLE more (n integer); SELECT nothing"]
        let error = #expect(throws: StoreError.self) {
            try PostgresStore(url: database.url, migrations: broken)
        }
        #expect(error?.isTransient == false)
        #expect(try database.execute("SELECT to_regclass('overtime.more')") == nil)
        try database.open().put(.running("a"))
    }

    @Test("a schema of a newer program is left as it is")
    func newerSchema() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        try database.execute("UPDATE overtime.schema_version SET version = 99")
        let error = try failure(database.url)
        #expect(error == .newerSchema(found: 99, known: PostgresSchema.migrations.count))
        expect(error, transient: false, says: "99", "use the newer program")
        // One that is connected goes on, until it must connect anew.
        try store.put(.running("a"))
        try database.toStores("pg_terminate_backend")
        _ = try Blocking { try store.check() }.error()
        #expect(try Blocking { try store.check() }.error() == error)
    }

    @Test("a schema of this name that somebody else made is left as it is")
    func foreignSchema() throws {
        let database = try PostgresDatabase()
        try database.execute("CREATE SCHEMA overtime; CREATE TABLE overtime.things (n integer)")
        expect(
            try failure(database.url), transient: false, says: "overtime", "other tables", "left as it is")
        #expect(try database.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'overtime'") == "1")
    }

    @Test("an empty schema of this name is used")
    func emptySchema() throws {
        let database = try PostgresDatabase()
        try database.execute("CREATE SCHEMA overtime")
        try database.open().put(.running("a"))
    }

    @Test("a database in another encoding is refused")
    func encoding() throws {
        let database = try PostgresDatabase(
            options: "ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
        expect(try failure(database.url), transient: false, says: "LATIN1", "ENCODING UTF8")
        #expect(try database.execute("SELECT to_regnamespace('overtime')") == nil)
    }

    @Test("who is not let in is told so, and not the password")
    func denied() throws {
        let database = try PostgresDatabase()
        let at = try #require(database.url.lastIndex(of: "@"))
        let place = database.url[at...]
        let remedy = "check user, password, database and rights"
        for user in ["overtime:secret", "nobody:secret", "overtime"] {
            expect(try failure("postgresql://\(user)\(place)"), transient: false, says: "127.0.0.1", remedy)
        }
        let missing = try failure(database.url + "_missing")
        expect(missing, transient: false, says: "_missing", "does not exist", remedy)
    }

    @Test("a text that is no URL is refused without being repeated")
    func noURL() throws {
        for text in [
            "postgresql://overtime:secret@host:port:5/x", "secret", "postgresql://u:secret@h/d?nothing=1",
        ] {
            expect(try failure(text), transient: false, says: "postgresql://user:password@host")
        }
    }

    @Test("a server that is not there, and one that says nothing, may come back")
    func notThere() throws {
        let relay = try Relay(to: 1)
        expect(
            try failure("postgresql://overtime:secret@127.0.0.1:\(relay.port)/overtime"), transient: true,
            says: "127.0.0.1:\(relay.port)/overtime", "check the server")
        relay.end()
        expect(
            try failure("postgresql://overtime:secret@127.0.0.1:1/overtime"), transient: true,
            says: "127.0.0.1:1/overtime", "check the server")
        expect(
            try failure("postgresql://overtime:secret@nowhere.invalid/overtime"), transient: true,
            says: "nowhere.invalid/overtime")
    }

    @Test("a login that is not answered ends after its time")
    func silentLogin() throws {
        let relay = try Relay(to: PostgresServer.port)
        defer { relay.end() }
        relay.mode = .swallowAnswers
        let began = ContinuousClock.now
        expect(
            try failure("postgresql://overtime:secret@127.0.0.1:\(relay.port)/overtime?connect_timeout=2"),
            transient: true, says: "127.0.0.1:\(relay.port)/overtime")
        #expect(ContinuousClock.now - began < .seconds(5))
    }

    /// A password that is being changed must not end a worker.
    @Test("whoever was let in once and is not any more goes on trying")
    func deniedLater() throws {
        let database = try PostgresDatabase()
        let store = try database.open()
        try database.execute("ALTER DATABASE \(database.name) ALLOW_CONNECTIONS false", elsewhere: true)
        try database.toStores("pg_terminate_backend", elsewhere: true)
        _ = try Blocking { try store.check() }.error()
        #expect(try Blocking { try store.check() }.error()?.isTransient == true)
        try database.execute("ALTER DATABASE \(database.name) ALLOW_CONNECTIONS true", elsewhere: true)
        try store.check()
    }

    @Test("of several hosts the one that is there is used")
    func severalHosts() throws {
        let database = try PostgresDatabase()
        let url = database.url.replacing("127.0.0.1:", with: "127.0.0.1:1,127.0.0.1:")
        let store = try PostgresStore(url: url)
        try store.put(.running("a"))
        #expect(store.name.hasPrefix("postgresql://127.0.0.1:1,127.0.0.1:\(PostgresServer.port)/test_"))
    }
}
