import RoomCore

extension SQLiteStore {
    package func statistics() throws(StoreError) -> StoreStatistics {
        try reading { link throws(StoreError) in
            let connection = link.connection
            if counts == nil {
                counts = LiveCounts(
                    liveRooms: Int(try connection.integer("SELECT count(*) FROM rooms WHERE phase < 2")),
                    outbox: Int(try connection.integer("SELECT count(*) FROM outbox")))
            }
            return StoreStatistics(
                schemaVersion: Int(try connection.integer("PRAGMA user_version")),
                liveRooms: counts?.liveRooms ?? 0,
                outboxDepth: counts?.outbox ?? 0, oldestOutboxAt: try oldestOutboxAt(link),
                databaseBytes: try connection.integer("PRAGMA page_count")
                    * connection.integer("PRAGMA page_size"),
                journalBytes: connection.journalSize)
        }
    }

    package func check() throws(StoreError) {
        try writing { link throws(StoreError) in try link.statements.probe.run() }
    }

    private func oldestOutboxAt(_ link: Link) throws(StoreError) -> Instant? {
        let row = link.statements.oldestOutbox
        defer { row.reset() }
        guard try row.step() else { return nil }
        let (milliseconds, overflow) = row.integer(0).multipliedReportingOverflow(by: 1_000)
        return overflow ? nil : Instant(milliseconds: milliseconds)
    }
}
