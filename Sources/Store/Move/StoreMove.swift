package import RoomCore

/// Moves a store from SQLite to PostgreSQL, while no worker uses either.
///
/// | state | SQLite | PostgreSQL | a run of this |
/// | --- | --- | --- | --- |
/// | not begun | a worker may start | empty | begins |
/// | moving | a worker may start; then what was moved is of no use | refuses workers | goes on, or begins anew where SQLite was used |
/// | compared and marked | refuses workers | refuses workers | compares again and finishes |
/// | finished | refuses workers | a worker may start | does nothing |
///
/// At no time both let a worker in. Each page is one transaction of PostgreSQL, in byte order of its keys: a
/// migration that was killed goes on behind the last key that is there.
package struct StoreMove {
    /// What was done, a table each.
    package struct Step: Hashable, Sendable {
        package enum Kind: String, Sendable {
            case copied
            case compared
        }

        package let kind: Kind
        package let table: String
        package let rows: Int
        /// Whether an earlier run had copied some already.
        package let wentOn: Bool
    }

    package enum Outcome: Hashable, Sendable {
        /// With the number of rooms.
        case moved(rooms: Int)
        /// It was before, at that instant.
        case movedBefore(at: String)
    }

    private let path: String
    private let url: String
    private let at: String
    private let startedAt: Instant
    private let pageRows: Int
    private let pageBytes: Int
    /// Called after each page that is durable.
    private let afterPage: (String) throws(MoveError) -> Void

    /// - Parameters:
    ///   - path: the SQLite store.
    ///   - url: of libpq, the PostgreSQL database.
    ///   - at: the time now, as people read it.
    package init(from path: String, to url: String, startedAt: Instant, at: String) {
        self.init(from: path, to: url, startedAt: startedAt, at: at, pageRows: 2_000, pageBytes: 4 << 20)
    }

    init(
        from path: String, to url: String, startedAt: Instant, at: String, pageRows: Int, pageBytes: Int,
        afterPage: @escaping (String) throws(MoveError) -> Void = { _ in }
    ) {
        self.path = path
        self.url = url
        self.startedAt = startedAt
        self.at = at
        self.pageRows = pageRows
        self.pageBytes = pageBytes
        self.afterPage = afterPage
    }

    package func run(_ report: (Step) -> Void) throws(MoveError) -> Outcome {
        let source = try MoveSource(path: path, startedAt: startedAt)
        let target = try MoveTarget(url: url)
        let fingerprint = try Self.reading { () throws(StoreError) in try source.fingerprint() }
        let mark = try Self.reading { () throws(StoreError) in try source.mark() }
        if let mark, mark.target != target.name {
            throw .source(.moved(path: source.path, to: mark.target, at: mark.at))
        }
        switch try Self.writing({ () throws(StoreError) in try target.state() }) {
        case nil:
            if let mark { throw .source(.moved(path: source.path, to: mark.target, at: mark.at)) }
            try target.begin(source: source.path, fingerprint: fingerprint)
        case let state? where state.finishedAt != nil:
            guard let mark else {
                throw .occupied(server: target.name, "has the rooms of sqlite:\(state.source) already")
            }
            return .movedBefore(at: mark.at)
        case let state? where state.fingerprint == fingerprint:
            try target.refuseWorkers()
        case let state? where state.source == source.path:
            try target.beginAnew(source: source.path, fingerprint: fingerprint)
        case let state?:
            throw .occupied(
                server: target.name, "is half of a migration from sqlite:\(state.source)")
        }
        for table in MovedTable.all { report(try copy(table, source, target)) }
        let numbers = try Self.reading { () throws(StoreError) in try source.highest() }
        try Self.writing { () throws(StoreError) in
            try target.setNumbers(position: numbers.position, answer: numbers.answer)
        }
        var rooms = 0
        do throws(MoveError) {
            for table in MovedTable.all {
                let step = try compare(table, source, target)
                if table.name == "rooms" { rooms = step.rows }
                report(step)
            }
        } catch {
            if case .different = error { try target.condemn() }
            throw error
        }
        if mark == nil {
            try Self.reading { () throws(StoreError) in
                try source.setMark(MoveMark(target: target.name, at: at))
            }
            try afterPage("mark")
        }
        try target.finish()
        return .moved(rooms: rooms)
    }

    /// Lets workers use the SQLite store again, where nothing has changed in PostgreSQL since; there they are refused then.
    package func takeBack(_ report: (Step) -> Void) throws(MoveError) {
        let source = try MoveSource(path: path, startedAt: startedAt)
        guard let mark = try Self.reading({ () throws(StoreError) in try source.mark() }) else {
            throw .notMoved(path: source.path)
        }
        let target = try MoveTarget(url: url)
        guard mark.target == target.name else {
            throw .source(.moved(path: source.path, to: mark.target, at: mark.at))
        }
        try target.refuseWorkers()
        do throws(MoveError) {
            for table in MovedTable.all { report(try compare(table, source, target)) }
        } catch {
            guard case .different(let table, let row, let text) = error else { throw error }
            throw .changedSince(path: source.path, table: table, row: row, text)
        }
        try target.condemn()
        try Self.reading { () throws(StoreError) in try source.removeMark() }
    }

    // MARK: Steps

    private func copy(
        _ table: MovedTable, _ source: MoveSource, _ target: MoveTarget
    ) throws(MoveError) -> Step {
        var last = try Self.writing { () throws(StoreError) in try target.lastKey(of: table) }
        let wentOn = last != nil
        var count = 0
        while true {
            let rows = try Self.reading { () throws(StoreError) in
                try source.page(of: table, after: last, rows: pageRows, bytes: pageBytes)
            }
            guard let row = rows.last else {
                return Step(kind: .copied, table: table.name, rows: count, wentOn: wentOn)
            }
            try Self.writing { () throws(StoreError) in try target.write(rows, to: table) }
            last = row.key(of: table)
            count += rows.count
            try afterPage(table.name)
        }
    }

    /// Reads both sides again and compares them row by row, column by column.
    private func compare(
        _ table: MovedTable, _ source: MoveSource, _ target: MoveTarget
    ) throws(MoveError) -> Step {
        var last: MovedRow?
        var count = 0
        while true {
            let here = try Self.reading { () throws(StoreError) in
                try source.page(of: table, after: last, rows: pageRows, bytes: pageBytes)
            }
            let there = try Self.writing { () throws(StoreError) in
                try target.page(of: table, after: last, rows: max(here.count, 1))
            }
            for (index, row) in here.enumerated() {
                guard index < there.count, row.values.starts(with: there[index].key(of: table).values) else {
                    throw .different(table: table.name, row: row.name(in: table), "the row is not there")
                }
                if let column = row.difference(from: there[index], in: table) {
                    throw .different(
                        table: table.name, row: row.name(in: table), "column \(column) is another")
                }
            }
            count += here.count
            guard let row = here.last else {
                guard let more = there.first else {
                    return Step(kind: .compared, table: table.name, rows: count, wentOn: false)
                }
                throw .different(
                    table: table.name, row: more.name(in: table), "the row is there only")
            }
            last = row.key(of: table)
        }
    }

    private static func reading<Value>(
        _ body: () throws(StoreError) -> Value
    ) throws(MoveError) -> Value {
        do throws(StoreError) { return try body() } catch { throw .source(error) }
    }

    private static func writing<Value>(
        _ body: () throws(StoreError) -> Value
    ) throws(MoveError) -> Value {
        do throws(StoreError) { return try body() } catch { throw .target(error) }
    }
}
