import RoomCore

extension SQLiteStore {
    package func commit(_ batch: BatchCommit) throws(StoreError) -> [Int64] {
        var live = 0
        var removed = 0
        let positions = try writing { link throws(StoreError) -> [Int64] in
            live = try write(batch.rooms, link)
            for write in batch.participants { try self.write(write, link) }
            let positions = try append(batch.outbox, link)
            try write(batch.answers, lastPositions: lastPositions(batch.outbox, positions), link)
            removed = try remove(batch.published, link)
            for key in batch.clearedAttempts {
                link.statements.removeAttempts.bind(1, key)
                try link.statements.removeAttempts.run()
            }
            return positions
        }
        counts?.liveRooms += live
        counts?.outbox += positions.count - removed
        return positions
    }

    // MARK: Rooms

    /// Compares every version, then has nothing written where one differs.
    ///
    /// - Returns: by how much the number of live rooms grew.
    private func write(_ writes: [RoomWrite], _ link: Link) throws(StoreError) -> Int {
        var conflicts: [RoomID] = []
        var live = 0
        for write in writes {
            let head = try head(of: write, link)
            guard (head?.version ?? 0) == write.expectedVersion else {
                conflicts.append(write.room.id)
                continue
            }
            guard write.isChanged, conflicts.isEmpty else { continue }
            guard try self.write(write.room, over: head, link) else {
                conflicts.append(write.room.id)
                continue
            }
            live += (write.room.session?.isLive == true ? 1 : 0) - (head?.isLive == true ? 1 : 0)
        }
        guard !conflicts.isEmpty else { return live }
        guard Set(writes.map(\.room.id)).count == writes.count else {
            throw .refused("a batch names a room twice")
        }
        throw .conflict(conflicts)
    }

    /// The head that a write expects where it was loaded with it: the write compares the version once more. A row that is
    /// only compared, or not known, is looked at.
    private func head(of write: RoomWrite, _ link: Link) throws(StoreError) -> RoomRow.Head? {
        // Once only: a batch that names a room twice must not find it as it was.
        if write.isChanged, let known = heads.removeValue(forKey: write.room.id),
            known.version == write.expectedVersion
        {
            return known
        }
        return try head(of: write.room.id, link)
    }

    func head(of id: RoomID, _ link: Link) throws(StoreError) -> RoomRow.Head? {
        let row = link.statements.roomHead
        defer { row.reset() }
        row.bind(1, id)
        guard try row.step() else { return nil }
        return RoomRow.Head(
            version: row.integer(0), session: row.integer(1),
            cold: RoomRow.Cold(
                definition: row.optionalInteger(3), sessionDefinition: row.optionalInteger(4),
                phase: row.optionalInteger(2), idleSince: row.optionalInteger(5)))
    }

    /// - Returns: false, and nothing may be committed, where the row is not as `head` says.
    func write(_ room: Room, over head: RoomRow.Head?, _ link: Link) throws(StoreError) -> Bool {
        if let defect = room.defect { throw .refused("room \(room.id.text): \(defect)") }
        let old = head?.cold ?? RoomRow.Cold()
        var new = RoomRow.Cold(
            phase: RoomFields.phase(of: room.session), idleSince: RoomFields.idleSince(room))
        if let definition = room.definition {
            new.definition = try link.definitions.key(
                for: definition, of: room.id, candidates: old.definition)
        }
        if let session = room.session {
            new.sessionDefinition = try link.definitions.key(
                for: session.definition, of: room.id, candidates: old.sessionDefinition, new.definition)
        }
        try link.definitions.move(
            (old.definition, new.definition), (old.sessionDefinition, new.sessionDefinition))

        // A room whose indexed columns and definitions stay keeps them unwritten.
        if let head, old == new {
            let statement = link.statements.updateRoom
            RoomRow.bindHot(room, version: head.version + 1, to: statement)
            statement.bind(20, head.version)
            try statement.run()
            guard link.connection.changes == 1 else { return false }
        } else {
            if let head {
                guard try self.head(of: room.id, link)?.version == head.version else { return false }
            }
            let statement = link.statements.putRoom
            RoomRow.bindHot(room, version: (head?.version ?? 0) + 1, to: statement)
            RoomRow.bindCold(new, to: statement)
            try statement.run()
        }
        try leaveParticipants(of: room, over: head, link)
        return true
    }

    private func leaveParticipants(of room: Room, over head: RoomRow.Head?, _ link: Link) throws(StoreError) {
        guard
            let bound = RoomFields.leftoverBound(
                of: room, overSession: head?.session, wasLive: head?.isLive == true)
        else { return }
        link.statements.putLeftover.bind(1, room.id)
        link.statements.putLeftover.bind(2, bound)
        try link.statements.putLeftover.run()
    }

    private func write(_ write: ParticipantWrite, _ link: Link) throws(StoreError) {
        switch write.change {
        case .connected(let participant):
            let statement = link.statements.putParticipant
            statement.bind(1, write.room)
            statement.bind(2, write.session)
            statement.bind(3, participant.user)
            statement.bind(4, ParticipantFields.number(of: participant.role))
            statement.bind(5, participant.joinedAt.milliseconds)
            try statement.run()
        case .left(let user):
            let statement = link.statements.removeParticipant
            statement.bind(1, write.room)
            statement.bind(2, write.session)
            statement.bind(3, user)
            try statement.run()
        }
    }

    // MARK: Answers and messages

    private func write(
        _ answers: [AnswerWrite], lastPositions: [RoomID: Int64], _ link: Link
    ) throws(StoreError) {
        let statement = link.statements.insertAnswer
        for answer in answers {
            statement.bind(1, answer.key.room)
            statement.bind(2, answer.key.id)
            statement.bind(3, answer.session)
            statement.bind(4, answer.at.milliseconds)
            statement.bind(5, lastPositions[answer.key.room])
            statement.bind(6, answer.canonical)
            statement.bind(7, answer.reply)
            try statement.run()
        }
    }

    private func append(_ drafts: [OutboxDraft], _ link: Link) throws(StoreError) -> [Int64] {
        var positions: [Int64] = []
        positions.reserveCapacity(drafts.count)
        let statement = link.statements.insertOutbox
        for draft in drafts {
            statement.bind(1, draft.format)
            statement.bind(2, draft.room)
            statement.bind(3, draft.sequence)
            statement.bind(4, draft.type)
            statement.bind(5, draft.messageID)
            statement.bind(6, draft.timestamp)
            statement.bind(7, draft.body)
            statement.bind(8, draft.trace)
            try statement.run()
            positions.append(link.connection.lastInsertedRow)
        }
        return positions
    }

    private func lastPositions(_ drafts: [OutboxDraft], _ positions: [Int64]) -> [RoomID: Int64] {
        var last = [RoomID: Int64](minimumCapacity: drafts.count)
        for (draft, position) in zip(drafts, positions) { last[draft.room] = position }
        return last
    }

    /// - Returns: how many there were.
    func remove(_ positions: [Int64], _ link: Link) throws(StoreError) -> Int {
        let sorted = positions.sorted()
        guard var first = sorted.first else { return 0 }
        var last = first
        var removed = 0
        for position in sorted.dropFirst() {
            if position != last, position != last &+ 1 {
                removed += try removeRun(first, last, link)
                first = position
            }
            last = position
        }
        return removed + (try removeRun(first, last, link))
    }

    /// Removes a run of neighbours by one statement; publishing in order makes long ones.
    private func removeRun(_ first: Int64, _ last: Int64, _ link: Link) throws(StoreError) -> Int {
        link.statements.removeOutbox.bind(1, first)
        link.statements.removeOutbox.bind(2, last)
        try link.statements.removeOutbox.run()
        return link.connection.changes
    }
}
