import RoomCore

/// Which message killed a worker: runs, and marks of the messages each was trying.
///
/// The file has one owner, so a run that is found here without an end has crashed. It stays as long as marks
/// name it.
extension SQLiteStore {
    package func beginRun(_ run: RunRow) throws(StoreError) -> [String] {
        try writing { link throws(StoreError) in
            let statements = link.statements
            try statements.removeSpentRuns.run()
            statements.markCrashedRuns.bind(1, run.id)
            statements.markCrashedRuns.bind(2, run.startedAt.milliseconds)
            try statements.markCrashedRuns.run()
            statements.putRun.bind(1, run.id)
            statements.putRun.bind(2, Int64(run.pid))
            statements.putRun.bind(3, run.host)
            statements.putRun.bind(4, run.startedAt.milliseconds)
            try statements.putRun.run()

            let row = statements.crashedRuns
            defer { row.reset() }
            var crashed: [String] = []
            while try row.step() {
                guard let id = row.text(0) else { throw .corrupt("a run's id is not text") }
                crashed.append(id)
            }
            return crashed
        }
    }

    package func endRun(_ id: String) throws(StoreError) {
        try writing { link throws(StoreError) in
            link.statements.removeRunAttempts.bind(1, id)
            try link.statements.removeRunAttempts.run()
            link.statements.removeRun.bind(1, id)
            try link.statements.removeRun.run()
        }
    }

    package func markAttempts(_ keys: [AttemptKey], run: String) throws(StoreError) {
        try writing { link throws(StoreError) in
            for key in keys {
                link.statements.putAttempt.bind(1, key)
                link.statements.putAttempt.bind(2, run)
                try link.statements.putAttempt.run()
            }
        }
    }

    package func crashes(of keys: [AttemptKey]) throws(StoreError) -> [AttemptKey: Int] {
        try reading { link throws(StoreError) in
            let row = link.statements.countAttempts
            defer { row.reset() }
            var counts: [AttemptKey: Int] = [:]
            for key in keys {
                row.bind(1, key)
                if try row.step(), row.integer(0) > 0 { counts[key] = Int(row.integer(0)) }
                row.reset()
            }
            return counts
        }
    }
}
