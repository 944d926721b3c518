import Glibc
import RoomCore

/// Which message killed a worker, and which worker lives: runs with their leases, and marks of the messages each was
/// trying.
///
/// A run whose lease has run out has crashed, as far as anybody can tell; should it come back, it is taken up again with its
/// next renewal. One that has given its lease up, because the broker is not reached, has not: it has `shards` = 0. A run of
/// the same place whose process is gone need not be waited for.
extension PostgresStore {
    package func beginRun(_ run: RunRow) throws(StoreError) -> [String] {
        let gone = try neighbours(of: run).filter { !Self.lives($0.pid, besides: run) }.map(\.id)
        let answers = try transactionGivingAnswers([
            PostgresConnection.Call(.endLeases) { $0.addTexts(gone) },
            PostgresConnection.Call(.removeSpentRuns) { $0.add(run.id) },
            PostgresConnection.Call(.markCrashedRuns) { parameters in
                parameters.add(run.id)
                parameters.add(run.startedAt.milliseconds)
            },
            PostgresConnection.Call(.putRun) { parameters in
                parameters.add(run.id)
                parameters.add(Int(run.pid))
                parameters.add(run.host)
                parameters.add(run.place)
                parameters.add(run.startedAt.milliseconds)
            },
        ]) { _ in [PostgresConnection.Call(.crashedRuns)] }
        self.run = run
        return try Self.names(answers[0])
    }

    private func neighbours(of run: RunRow) throws(StoreError) -> [(id: String, pid: Int64)] {
        guard let place = run.place else { return [] }
        let answer = try ask(.neighbours) { parameters in
            parameters.add(run.id)
            parameters.add(place)
        }
        var found: [(id: String, pid: Int64)] = []
        for row in 0..<answer.count {
            found.append((try Self.name(answer, row, 0), answer.integer(row, 1)))
        }
        return found
    }

    /// Whether a process of this place is there; one with this run's own number is not.
    private static func lives(_ pid: Int64, besides run: RunRow) -> Bool {
        guard let pid = Int32(exactly: pid), pid > 0, pid != run.pid else { return false }
        return kill(pid, 0) == 0 || errno != ESRCH
    }

    package func endRun(_ id: String) throws(StoreError) {
        try transaction { _ in
            (
                [
                    PostgresConnection.Call(.removeRunAttempts) { $0.add(id) },
                    PostgresConnection.Call(.removeRun) { $0.add(id) },
                ], ()
            )
        }
    }

    // MARK: Leases

    package func renewLease(_ lease: Lease) throws(StoreError) -> Roster {
        guard let run, run.id == lease.run else { throw .refused("a lease of a run that has not begun") }
        let answers = try transactionGivingAnswers([
            PostgresConnection.Call(.renewLease) { parameters in
                parameters.add(run.id)
                parameters.add(Int(run.pid))
                parameters.add(run.host)
                parameters.add(run.place)
                parameters.add(run.startedAt.milliseconds)
                parameters.add(lease.shards)
                parameters.add(lease.consumed.map(String.init).joined(separator: ","))
                parameters.add(lease.clockOffset)
            },
            PostgresConnection.Call(.markCrashedRuns) { parameters in
                parameters.add(run.id)
                parameters.addNull()
            },
            PostgresConnection.Call(.relax),
        ]) { _ in
            [
                PostgresConnection.Call(.now), PostgresConnection.Call(.members),
                PostgresConnection.Call(.crashedRuns),
            ]
        }
        let members = answers[1]
        var roster: [Roster.Member] = []
        for row in 0..<members.count {
            let consumed = (members.text(row, 4) ?? "").split(separator: ",").compactMap { Int($0) }
            roster.append(
                Roster.Member(
                    lease: Lease(
                        run: try Self.name(members, row, 0), shards: Int(members.integer(row, 3)),
                        consumed: consumed, clockOffset: members.integer(row, 5)),
                    pid: Int32(truncatingIfNeeded: members.integer(row, 1)),
                    host: try Self.name(members, row, 2)))
        }
        return Roster(
            now: Instant(milliseconds: answers[0].integer(0, 0)), members: roster,
            crashed: try Self.names(answers[2]))
    }

    package func releaseLease(of run: String) throws(StoreError) {
        _ = try ask(.releaseLease) { $0.add(run) }
    }

    // MARK: Attempts

    package func markAttempts(_ keys: [AttemptKey], run: String) throws(StoreError) {
        guard !keys.isEmpty else { return }
        let names = keys.map(\.text)
        try transaction { _ in
            (
                [
                    PostgresConnection.Call(.putAttempts) { parameters in
                        parameters.addTexts(names)
                        parameters.add(run)
                    }
                ], ()
            )
        }
    }

    package func crashes(of keys: [AttemptKey]) throws(StoreError) -> [AttemptKey: Int] {
        guard !keys.isEmpty else { return [:] }
        let answer = try ask(.countAttempts) { $0.addTexts(keys.map(\.text)) }
        var counts: [AttemptKey: Int] = [:]
        for row in 0..<answer.count {
            counts[AttemptKey(try Self.name(answer, row, 0))] = Int(answer.integer(row, 1))
        }
        return counts
    }

    private static func names(_ answer: Answer) throws(StoreError) -> [String] {
        var names: [String] = []
        for row in 0..<answer.count { names.append(try name(answer, row, 0)) }
        return names
    }
}
