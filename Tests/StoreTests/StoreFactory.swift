import MemoryStore
import RoomCore
import Store
import Testing

/// One kind of store that the conformance suite runs on. Another store joins by another entry in `all`.
struct StoreFactory: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// A new, empty store, which lives as long as the fixture.
    let make: @Sendable () throws -> StoreFixture

    static let all =
        [
            StoreFactory(testDescription: "SQLite") {
                let folder = try TemporaryFolder()
                let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
                return StoreFixture(store: store, keeping: folder)
            },
            StoreFactory(testDescription: "memory") {
                let store = MemoryStore()
                return StoreFixture(store: store, keeping: store)
            },
        ] + (PostgresServer.isThere ? [postgres] : [])

    private static let postgres = StoreFactory(testDescription: "PostgreSQL") {
        let database = try PostgresDatabase()
        return StoreFixture(store: try PostgresStore(url: database.url), keeping: database)
    }
}

struct StoreFixture {
    let store: any RoomStore
    private let kept: AnyObject

    init(store: any RoomStore, keeping kept: AnyObject) {
        self.store = store
        self.kept = kept
    }
}
