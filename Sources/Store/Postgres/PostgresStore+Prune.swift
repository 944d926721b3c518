import RoomCore

/// Pruning; of several workers one does it at a time, the others find nothing to do.
extension PostgresStore {
    package func prune(_ retention: Retention, limit: Int) throws(StoreError) -> PruneCount {
        guard limit > 0 else { return PruneCount() }
        let ids = (retention.now - retention.idsFor).milliseconds
        let rooms = (retention.now - retention.roomsFor).milliseconds
        let first = [
            PostgresConnection.Call(.tryPruneLock),
            PostgresConnection.Call(.oldAnswers) { parameters in
                parameters.add(answersCursor)
                parameters.add(limit)
            },
            PostgresConnection.Call(.leftovers) { $0.add(limit) },
            PostgresConnection.Call(.idleRooms) { parameters in
                parameters.add(rooms)
                parameters.add(limit)
            },
        ]
        var count = PruneCount()
        var cursor = answersCursor
        var touched: [PostgresStatement] = []
        let answers = try transactionGivingAnswers(first) { answers throws(StoreError) in
            count = PruneCount()
            cursor = answersCursor
            guard answers[0].integer(0, 0) == 1 else { return [] }
            var calls: [PostgresConnection.Call] = []
            let expired = expiredAnswers(answers[1], retention, limit: limit, from: &cursor, &count)
            if !expired.isEmpty { calls.append(PostgresConnection.Call(.removeAnswers) { $0.add(expired) }) }
            let leftovers = answers[2]
            if leftovers.count > 0 { calls += leftoverCalls(leftovers, limit: limit) }
            let idle = answers[3]
            if idle.count > 0 {
                let names = (0..<idle.count).map { idle.bytes($0, 0) }
                calls.append(PostgresConnection.Call(.emptyRooms) { $0.add(names) })
                count.rooms = idle.count
                if idle.count == limit { count.isUnfinished = true }
            }
            calls.append(PostgresConnection.Call(.forgottenAttempts) { $0.add(ids) })
            calls.append(PostgresConnection.Call(.forgottenRuns) { $0.add(ids) })
            touched = calls.map(\.statement)
            return calls
        }
        for (statement, answer) in zip(touched, answers) {
            switch statement {
            case .pruneParticipants: count.participants = answer.touched
            case .forgottenRuns: count.runs = answer.touched
            case .leftovers: if answer.count > 0 { count.isUnfinished = true }
            default: break
            }
        }
        answersCursor = cursor
        return count
    }

    /// Goes through the expired answers, the oldest first, a piece a call, and then begins anew: those that a long
    /// session keeps must not be looked at in every call. The first that has not expired ends it; one from the future,
    /// which a wrong clock left, does not.
    private func expiredAnswers(
        _ answer: Answer, _ retention: Retention, limit: Int, from cursor: inout Int64,
        _ count: inout PruneCount
    ) -> [Int64] {
        let (first, last) = ((retention.now - retention.idsFor).milliseconds, retention.now.milliseconds)
        var expired: [Int64] = []
        var seen = 0
        for row in 0..<answer.count {
            let at = answer.integer(row, 0)
            if at >= first, at <= last { break }
            cursor = answer.integer(row, 1)
            seen += 1
            let isKeptBySession = answer.integer(row, 2) == 1
            if at < first, !isKeptBySession { expired.append(cursor) }
        }
        count.answers = expired.count
        if seen == limit { count.isUnfinished = true } else { cursor = .min }
        return expired
    }

    private func leftoverCalls(_ leftovers: Answer, limit: Int) -> [PostgresConnection.Call] {
        let rooms = (0..<leftovers.count).map { leftovers.bytes($0, 0) }
        let bounds = (0..<leftovers.count).map { leftovers.integer($0, 1) }
        return [
            PostgresConnection.Call(.pruneParticipants) { parameters in
                parameters.add(rooms)
                parameters.add(bounds)
                parameters.add(limit)
            },
            PostgresConnection.Call(.removeLeftovers) { parameters in
                parameters.add(rooms)
                parameters.add(bounds)
            },
            PostgresConnection.Call(.leftovers) { $0.add(1) },
        ]
    }
}
