import RoomCore

extension SQLiteStore {
    package func load(_ request: BatchRequest) throws(StoreError) -> BatchState {
        try reading { link throws(StoreError) in
            heads.removeAll(keepingCapacity: true)
            var state = BatchState()
            state.rooms.reserveCapacity(request.rooms.count + request.participants.count)
            state.participants.reserveCapacity(request.participants.count)
            for id in request.rooms { _ = try load(id, into: &state, link) }
            for key in request.participants {
                guard let session = try load(key.room, into: &state, link) else { continue }
                if let found = try participant(key, session: session, link) {
                    state.participants[key] = found
                }
            }
            for key in request.keys {
                if let found = try answer(key, link) { state.answers[key] = found }
            }
            return state
        }
    }

    /// - Returns: the number of its live session; nil where it has none.
    private func load(_ id: RoomID, into state: inout BatchState, _ link: Link) throws(StoreError) -> Int64? {
        if let known = heads[id] { return known.liveSession }
        // Asked for an index and not for the room, which would be a copy of it.
        guard state.rooms.index(forKey: id) == nil else { return nil }
        let statement = link.statements.room
        defer { statement.reset() }
        statement.bind(1, id)
        guard try statement.step() else {
            state.rooms[id] = StoredRoom(room: Room(id: id), version: 0)
            return nil
        }
        state.rooms[id] = try RoomRow.read(statement, id: id, definitions: link.definitions)
        let head = RoomRow.head(statement)
        heads[id] = head
        return head.liveSession
    }

    private func participant(
        _ key: ParticipantKey, session: Int64, _ link: Link
    ) throws(StoreError) -> Participant? {
        let statement = link.statements.participant
        defer { statement.reset() }
        statement.bind(1, key.room)
        statement.bind(2, session)
        statement.bind(3, key.user)
        guard try statement.step() else { return nil }
        return try ParticipantFields.participant(
            key.user, role: statement.integer(0), joinedAt: statement.integer(1), of: key.room)
    }

    private func answer(_ key: CommandKey, _ link: Link) throws(StoreError) -> StoredAnswer? {
        let statement = link.statements.answer
        defer { statement.reset() }
        statement.bind(1, key.room)
        statement.bind(2, key.id)
        guard try statement.step() else { return nil }
        return StoredAnswer(
            canonical: statement.bytes(0), reply: statement.bytes(1),
            outboxPositionUpTo: statement.optionalInteger(2))
    }
}
