import RoomCore
package import Store

extension MemoryStore {
    package func moveLog() throws(StoreError) -> Bool { false }

    package func prune(_ retention: Retention, limit: Int) throws(StoreError) -> PruneCount {
        try run(.prune) { () throws(StoreError) in
            var count = PruneCount()
            guard limit > 0 else { return count }
            pruneAnswers(retention, limit: limit, &count)
            pruneParticipants(limit: limit, &count)
            pruneRooms(retention, limit: limit, &count)
            pruneRuns(retention, &count)
            return count
        }
    }

    private func pruneAnswers(_ retention: Retention, limit: Int, _ count: inout PruneCount) {
        let before = retention.now - retention.idsFor
        let old = disk.answers.filter { $0.value.write.at < before }
            .sorted { ($0.value.write.at, $0.value.number) < ($1.value.write.at, $1.value.number) }
        let page = old.filter { entry in
            answersCursor.map { (entry.value.write.at, entry.value.number) > ($0.at, $0.number) } ?? true
        }.prefix(limit)
        for (key, row) in page {
            answersCursor = (row.write.at, row.number)
            let session = disk.rooms[key.room]?.room.session
            if let session, session.isLive, session.number == row.write.session { continue }
            disk.answers[key] = nil
            count.answers += 1
        }
        if page.count == limit { count.isUnfinished = true } else { answersCursor = nil }
    }

    private func pruneParticipants(limit: Int, _ count: inout PruneCount) {
        var left = limit
        for (room, below) in disk.leftovers.sorted(by: { $0.key < $1.key }) {
            guard left > 0 else { break }
            let rows = disk.participants.keys.filter { $0.room == room && $0.session < below }
                .sorted { ($0.session, $0.user) < ($1.session, $1.user) }.prefix(left)
            for row in rows { disk.participants[row] = nil }
            count.participants += rows.count
            guard rows.count < left else { break }
            left -= rows.count + 1
            disk.leftovers[room] = nil
        }
        if !disk.leftovers.isEmpty { count.isUnfinished = true }
    }

    private func pruneRooms(_ retention: Retention, limit: Int, _ count: inout PruneCount) {
        let before = retention.now - retention.roomsFor
        var idle: [(since: Instant, room: Room)] = []
        for stored in disk.rooms.values {
            guard !stored.room.isOpen, case .ended(let ending) = stored.room.session?.phase,
                ending.endedAt < before
            else { continue }
            idle.append((ending.endedAt, stored.room))
        }
        idle.sort { ($0.since, $0.room.id) < ($1.since, $1.room.id) }
        for (_, room) in idle.prefix(limit) {
            write(Room(id: room.id, sequence: room.sequence, sessionNumber: room.sessionNumber))
        }
        count.rooms = min(idle.count, limit)
        if count.rooms == limit { count.isUnfinished = true }
    }

    private func pruneRuns(_ retention: Retention, _ count: inout PruneCount) {
        let before = retention.now - retention.idsFor
        let forgotten = disk.runs.filter { $0.value.crashedAt.map { $0 < before } ?? false }.map(\.key)
        for id in forgotten { disk.runs[id] = nil }
        let gone = Set(forgotten)
        if !gone.isEmpty { disk.attempts = disk.attempts.filter { !gone.contains($0.run) } }
        count.runs = gone.count
    }
}
