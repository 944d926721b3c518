import RoomCore

extension PostgresStore {
    /// Up to so many rooms are counted each time; of more the last full count is told for a while.
    private static let quickCount = 10_000
    private static let countLife = 60

    package func statistics() throws(StoreError) -> StoreStatistics {
        let answers = try ask([
            PostgresConnection.Call(.countLive) { $0.add(Self.quickCount + 1) },
            PostgresConnection.Call(.countOutbox) { $0.add(Self.quickCount + 1) },
            PostgresConnection.Call(.oldestOutbox), PostgresConnection.Call(.size),
        ])
        let oldest = answers[2].optionalInteger(0, 0).flatMap { seconds -> Instant? in
            let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
            return overflow ? nil : Instant(milliseconds: milliseconds)
        }
        return StoreStatistics(
            schemaVersion: PostgresSchema.migrations.count,
            liveRooms: try liveRooms(atLeast: Int(answers[0].integer(0, 0))),
            outboxDepth: Int(answers[1].integer(0, 0)),
            oldestOutboxAt: answers[2].count > 0 ? oldest : nil,
            databaseBytes: answers[3].integer(0, 0), journalBytes: 0)
    }

    /// The number of live rooms; of many it may be as old as `countLife` calls.
    private func liveRooms(atLeast some: Int) throws(StoreError) -> Int {
        guard some > Self.quickCount else {
            countedLive = nil
            return some
        }
        if let counted = countedLive, counted.age < Self.countLife {
            countedLive?.age += 1
            return counted.rooms
        }
        let rooms = Int(try ask(.countLive) { $0.add(Int64.max) }.integer(0, 0))
        countedLive = (rooms, 0)
        return rooms
    }
}
