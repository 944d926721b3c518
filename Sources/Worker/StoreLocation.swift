package import Service
package import Store

/// Where a worker's rooms are kept.
package enum StoreLocation: Sendable {
    case sqlite(path: String)
    /// A connection URL of libpq.
    case postgresql(Secret)

    /// For the log: without a password.
    package var name: String {
        switch self {
        case .sqlite(let path): "sqlite:\(path)"
        case .postgresql(let url): url.withoutCredentials
        }
    }

    /// Opens the store, and makes it where there is none.
    ///
    /// - Parameters:
    ///   - run: the worker's own, told to others who would open the same file.
    ///   - onDefect: told of rooms that cannot be read where others can.
    package func open(
        for run: RunRow, onDefect: @escaping (StoreError) -> Void
    ) throws(StoreError) -> any RoomStore {
        switch self {
        case .sqlite(let path):
            try SQLiteStore(path: path, startedAt: run.startedAt, onDefect: onDefect)
        case .postgresql(let url):
            try PostgresStore(url: url.reveal(), onDefect: onDefect)
        }
    }
}
