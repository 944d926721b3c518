import RoomCore

/// The columns of `rooms` as the statements select them.
private enum Column {
    static let id: Int32 = 0
    static let version: Int32 = 1
    static let definition: Int32 = 16
    static let sessionDefinition: Int32 = 17
    static let phase: Int32 = 18
    static let idleSince: Int32 = 19
}

extension PostgresStore {
    package func load(_ request: BatchRequest) throws(StoreError) -> BatchState {
        heads.removeAll(keepingCapacity: true)
        let ids = Set(request.rooms + request.participants.map(\.room))
        var state = BatchState()
        // The rooms first: what stands beside them is then of the versions that the commit will compare, or of later
        // ones, which it refuses.
        var calls = [PostgresConnection.Call(.now)]
        if !ids.isEmpty {
            calls.append(PostgresConnection.Call(.loadRooms) { $0.add(ids) })
            calls.append(
                PostgresConnection.Call(.loadUnsent) { parameters in
                    parameters.add(ids)
                    parameters.add(run?.id ?? "")
                })
        }
        if !request.participants.isEmpty {
            calls.append(
                PostgresConnection.Call(.loadParticipants) { parameters in
                    parameters.add(request.participants.map(\.room))
                    parameters.add(request.participants.map(\.user))
                })
        }
        if !request.keys.isEmpty {
            calls.append(
                PostgresConnection.Call(.loadAnswers) { parameters in
                    parameters.add(request.keys.map(\.room))
                    parameters.add(request.keys.map(\.id))
                })
        }
        for (call, answer) in zip(calls, try ask(calls)) {
            switch call.statement {
            case .now: state.now = Instant(milliseconds: answer.integer(0, 0))
            case .loadRooms: try readRooms(answer, into: &state)
            case .loadUnsent: state.unsent = try Self.messages(answer)
            case .loadParticipants: try readParticipants(answer, into: &state)
            case .loadAnswers: try readAnswers(answer, into: &state)
            default: break
            }
        }
        for id in ids where state.rooms[id] == nil {
            state.rooms[id] = StoredRoom(room: Room(id: id), version: 0)
        }
        return state
    }

    private func readRooms(_ answer: Answer, into state: inout BatchState) throws(StoreError) {
        for row in 0..<answer.count {
            let id = RoomID(try Self.name(answer, row, Column.id))
            let room = try room(answer, row, id: id)
            let version = answer.integer(row, Column.version)
            state.rooms[id] = StoredRoom(room: room, version: version)
            heads[id] = RoomHead(
                version: version, definition: room.definition, sessionDefinition: room.session?.definition,
                phase: answer.optionalInteger(row, Column.phase),
                idleSince: answer.optionalInteger(row, Column.idleSince))
        }
    }

    private func readParticipants(_ answer: Answer, into state: inout BatchState) throws(StoreError) {
        for row in 0..<answer.count {
            let room = RoomID(try Self.name(answer, row, 0))
            let user = UserID(try Self.name(answer, row, 1))
            state.participants[ParticipantKey(room: room, user: user)] = try ParticipantFields.participant(
                user, role: answer.integer(row, 2), joinedAt: answer.integer(row, 3), of: room)
        }
    }

    private func readAnswers(_ answer: Answer, into state: inout BatchState) throws(StoreError) {
        for row in 0..<answer.count {
            let key = CommandKey(
                room: RoomID(try Self.name(answer, row, 0)), id: CommandID(try Self.name(answer, row, 1)))
            state.answers[key] = StoredAnswer(
                canonical: answer.bytes(row, 2), reply: answer.bytes(row, 3),
                outboxPositionUpTo: answer.optionalInteger(row, 4))
        }
    }

    /// A room as a row of `rooms`.
    func room(_ answer: Answer, _ row: Int, id: RoomID) throws(StoreError) -> Room {
        var definition: Definition?
        if let text = answer.text(row, Column.definition) {
            definition = try definitions.definition(text, of: id)
        }
        var sessionDefinition = definition
        if let text = answer.text(row, Column.sessionDefinition) {
            sessionDefinition = try definitions.definition(text, of: id)
        }
        return try RoomFields(
            sequence: answer.integer(row, 2), session: answer.integer(row, 3), isOpen: answer.integer(row, 4),
            connected: answer.optionalInteger(row, 5), changedAt: answer.optionalInteger(row, 6),
            startedAt: answer.optionalInteger(row, 7), endsAt: answer.optionalInteger(row, 8),
            extensions: answer.optionalInteger(row, 9), announced: answer.optionalInteger(row, 10),
            extenderKind: answer.optionalInteger(row, 11), extendedBy: answer.text(row, 12),
            endedAt: answer.optionalInteger(row, 13), cause: answer.optionalInteger(row, 14),
            phase: answer.optionalInteger(row, Column.phase)
        ).room(id, definition: definition, sessionDefinition: sessionDefinition)
    }

    /// A name, which was text when it was written.
    static func name(_ answer: Answer, _ row: Int, _ column: Int32) throws(StoreError) -> String {
        guard let name = answer.text(row, column) else { throw .corrupt("a name is not text") }
        return name
    }
}
