/// Why a store was not moved. Whatever it is, the SQLite store is as it was, and the same command goes on from there.
package enum MoveError: Error, Hashable, Sendable {
    /// The file that is to be moved fails.
    case source(StoreError)
    /// The database that it is to be moved to fails.
    case target(StoreError)
    case missing(path: String)
    /// The target has rooms, events or answers of its own.
    case occupied(server: String, String)
    /// Workers use the target.
    case inUse(server: String, run: String, host: String)
    /// Another migration into the same database is under way.
    case underWay(server: String)
    /// What was read back is not what was moved.
    case different(table: String, row: String, String)
    /// Since it was moved the target has changed: going back would lose that.
    case changedSince(path: String, table: String, row: String, String)
    /// There is nothing to take back.
    case notMoved(path: String)
}

extension MoveError: CustomStringConvertible {
    /// One line: what happened to which thing, and the remedy.
    package var description: String {
        switch self {
        case .target(.unreachable(let server, let text)):
            "\(server) cannot be reached (\(text)): check the server and the network, and run this again: it goes on"
        case .target(.refused(let text)):
            "the database does not take a row (\(text)): the SQLite store is as it was"
        case .source(let error), .target(let error): error.description
        case .missing(let path): "\(path) is not there: check the path"
        case .occupied(let server, let text):
            "\(server) \(text): name an empty database, or drop its schema \(PostgresSchema.name) if nobody needs it"
        case .inUse(let server, let run, let host):
            "\(server) is used by a worker (run \(run) on \(host)): stop it; if it is gone, drop the schema \(PostgresSchema.name)"
        case .underWay(let server): "another migration into \(server) is under way: wait for it"
        case .different(let table, let row, let text):
            "table \(table), \(row): \(text); the SQLite store is as it was: run this again, it begins anew"
        case .changedSince(let path, let table, let row, let text):
            "the target was used since (table \(table), \(row): \(text)): to go back and lose that, restore \(path) to another path"
        case .notMoved(let path): "\(path) was not moved: there is nothing to take back"
        }
    }
}
