import RoomCore

/// A commit: first every room of the batch is locked and its version compared, then everything is written at once.
extension PostgresStore {
    package func commit(_ batch: BatchCommit) throws(StoreError) -> [Int64] {
        try refuseSenseless(batch)
        let plan = CommitPlan(batch, owner: run?.id ?? "")
        return try transaction(plan.first, refusal: { plan.meaning(of: $0) }) { answers throws(StoreError) in
            var answers = answers[...]
            var rows: [RoomID: CommitPlan.Row] = [:]
            if !batch.rooms.isEmpty, let locked = answers.popFirst() { rows = try CommitPlan.rows(locked) }
            let conflicts = batch.rooms.filter { (rows[$0.room.id]?.version ?? 0) != $0.expectedVersion }
            guard conflicts.isEmpty else { throw .conflict(conflicts.map(\.room.id)) }
            // Only now: what was loaded while somebody else committed may contradict itself, and is no fault of the batch.
            for write in batch.rooms where write.isChanged {
                if let defect = write.room.defect { throw .refused("room \(write.room.id.text): \(defect)") }
            }
            var positions: [Int64] = []
            if !batch.outbox.isEmpty, let numbers = answers.popFirst() {
                positions = (0..<numbers.count).map { numbers.integer($0, 0) }
            }
            // In order, so that two workers which make the same rooms do not wait for each other in a circle.
            let changed = batch.rooms.filter(\.isChanged).sorted { $0.room.id < $1.room.id }
            let writes = try roomWrites(changed, over: rows)
            return (writes + plan.rest(positions: positions), positions)
        }
    }

    /// What no store would take, before anything is sent.
    private func refuseSenseless(_ batch: BatchCommit) throws(StoreError) {
        guard Set(batch.rooms.map(\.room.id)).count == batch.rooms.count else {
            throw .refused("a batch names a room twice")
        }
        guard Set(batch.answers.map(\.key)).count == batch.answers.count else {
            throw .refused("a batch names a key twice")
        }
    }

    private func roomWrites(
        _ writes: [RoomWrite], over rows: [RoomID: CommitPlan.Row]
    ) throws(StoreError) -> [PostgresConnection.Call] {
        guard !writes.isEmpty else { return [] }
        var hot = RoomColumns()
        var replaced = RoomColumns()
        var inserted = RoomColumns()
        var leftovers: [(room: RoomID, below: Int64)] = []
        for write in writes {
            let row = rows[write.room.id]
            let head = heads[write.room.id]
            if row == nil {
                try inserted.add(write, &definitions)
            } else if let head, head.version == write.expectedVersion, head.covers(write.room) {
                hot.addHot(write)
            } else {
                try replaced.add(write, &definitions)
            }
            let bound = RoomFields.leftoverBound(
                of: write.room, overSession: row?.session, wasLive: row?.isLive == true)
            if let bound { leftovers.append((write.room.id, bound)) }
        }
        var calls: [PostgresConnection.Call] = []
        if !hot.isEmpty { calls.append(PostgresConnection.Call(.updateRooms, hot.fillHot)) }
        if !replaced.isEmpty { calls.append(PostgresConnection.Call(.replaceRooms, replaced.fillAll)) }
        if !inserted.isEmpty { calls.append(PostgresConnection.Call(.insertRooms, inserted.fillAll)) }
        if !leftovers.isEmpty {
            calls.append(
                PostgresConnection.Call(.putLeftovers) { parameters in
                    parameters.add(leftovers.map(\.room))
                    parameters.add(leftovers.map(\.below))
                })
        }
        return calls
    }
}

/// The statements of a commit, but for those of its rooms.
private struct CommitPlan {
    /// What is known of a room once it is locked.
    struct Row {
        let version: Int64
        let session: Int64
        let isLive: Bool
    }

    private let batch: BatchCommit
    private let owner: String

    init(_ batch: BatchCommit, owner: String) {
        self.batch = batch
        self.owner = owner
    }

    /// Locks the rooms, and takes positions only then: of two commits of a room the later one has the higher ones.
    var first: [PostgresConnection.Call] {
        var calls: [PostgresConnection.Call] = []
        if !batch.rooms.isEmpty {
            calls.append(PostgresConnection.Call(.lockRooms) { $0.add(batch.rooms.map(\.room.id).sorted()) })
        }
        if !batch.outbox.isEmpty {
            calls.append(PostgresConnection.Call(.nextPositions) { $0.add(batch.outbox.count) })
        }
        return calls
    }

    static func rows(_ answer: Answer) throws(StoreError) -> [RoomID: Row] {
        var rows = [RoomID: Row](minimumCapacity: answer.count)
        for row in 0..<answer.count {
            let phase = answer.optionalInteger(row, 3)
            rows[RoomID(try PostgresStore.name(answer, row, 0))] = Row(
                version: answer.integer(row, 1), session: answer.integer(row, 2),
                isLive: phase.map { $0 < 2 } ?? false)
        }
        return rows
    }

    /// Another worker made the same room, or answered the same key, since this batch was loaded: decide again.
    func meaning(of failure: PostgresConnection.Failure) -> StoreError? {
        guard SQLState.isUniqueViolation(failure.code) else { return nil }
        let rooms = Set(batch.rooms.map(\.room.id))
        switch failure.statement {
        case .insertRooms:
            return .conflict(batch.rooms.filter { $0.expectedVersion == 0 }.map(\.room.id))
        case .insertAnswers where batch.answers.allSatisfy { rooms.contains($0.key.room) }:
            let answered = Set(batch.answers.map(\.key.room))
            return .conflict(batch.rooms.map(\.room.id).filter(answered.contains))
        default:
            return nil
        }
    }

    func rest(positions: [Int64]) -> [PostgresConnection.Call] {
        participants + outbox(positions) + answers(positions) + published + attempts
    }

    // MARK: Participants

    /// The last word on each connection: a statement may touch a row once only.
    private var participants: [PostgresConnection.Call] {
        guard !batch.participants.isEmpty else { return [] }
        struct Key: Hashable {
            let room: RoomID
            let session: Int64
            let user: UserID
        }
        var last: [Key: Participant?] = [:]
        for write in batch.participants {
            switch write.change {
            case .connected(let participant):
                last.updateValue(
                    participant, forKey: Key(room: write.room, session: write.session, user: participant.user)
                )
            case .left(let user):
                last.updateValue(nil, forKey: Key(room: write.room, session: write.session, user: user))
            }
        }
        let connected = last.compactMap { key, participant in participant.map { (key, $0) } }
        let left = last.filter { $0.value == nil }.map(\.key)
        var calls: [PostgresConnection.Call] = []
        if !connected.isEmpty {
            calls.append(
                PostgresConnection.Call(.putParticipants) { parameters in
                    parameters.add(connected.map(\.0.room))
                    parameters.add(connected.map(\.0.session))
                    parameters.add(connected.map(\.0.user))
                    parameters.add(connected.map { ParticipantFields.number(of: $0.1.role) })
                    parameters.add(connected.map(\.1.joinedAt.milliseconds))
                })
        }
        if !left.isEmpty {
            calls.append(
                PostgresConnection.Call(.removeParticipants) { parameters in
                    parameters.add(left.map(\.room))
                    parameters.add(left.map(\.session))
                    parameters.add(left.map(\.user))
                })
        }
        return calls
    }

    // MARK: Messages and answers

    private func outbox(_ positions: [Int64]) -> [PostgresConnection.Call] {
        let drafts = batch.outbox
        guard !drafts.isEmpty else { return [] }
        return [
            PostgresConnection.Call(.insertOutbox) { parameters in
                parameters.add(owner)
                parameters.add(positions)
                parameters.add(drafts.map(\.format))
                parameters.add(drafts.map(\.room))
                parameters.add(drafts.map(\.sequence))
                parameters.addTexts(drafts.map(\.type))
                parameters.addBytes(drafts.map(\.messageID))
                parameters.add(drafts.map(\.timestamp))
                parameters.add(drafts.map(\.body))
                parameters.addTexts(drafts.map(\.trace))
            }
        ]
    }

    private func answers(_ positions: [Int64]) -> [PostgresConnection.Call] {
        guard !batch.answers.isEmpty else { return [] }
        var last = [RoomID: Int64](minimumCapacity: batch.outbox.count)
        for (draft, position) in zip(batch.outbox, positions) { last[draft.room] = position }
        // In order of their keys, so that two workers which answer the same ones do not wait for each other in a circle.
        let answers = batch.answers.sorted { ($0.key.room, $0.key.id) < ($1.key.room, $1.key.id) }
        return [
            PostgresConnection.Call(.insertAnswers) { parameters in
                parameters.add(answers.map(\.key.room))
                parameters.add(answers.map(\.key.id))
                parameters.add(answers.map(\.session))
                parameters.add(answers.map(\.at.milliseconds))
                parameters.add(answers.map { last[$0.key.room] })
                parameters.add(answers.map(\.canonical))
                parameters.add(answers.map(\.reply))
            }
        ]
    }

    private var published: [PostgresConnection.Call] {
        guard !batch.published.isEmpty else { return [] }
        return [PostgresConnection.Call(.removeOutbox) { $0.add(batch.published.sorted()) }]
    }

    private var attempts: [PostgresConnection.Call] {
        guard !batch.clearedAttempts.isEmpty else { return [] }
        return [PostgresConnection.Call(.removeAttempts) { $0.addTexts(batch.clearedAttempts.map(\.text)) }]
    }
}

/// Rooms as columns, a list each.
private struct RoomColumns {
    private var ids: [RoomID] = []
    private var versions: [Int64] = []
    private var fields: [RoomFields] = []
    private var definitions: [String?] = []
    private var sessionDefinitions: [String?] = []
    private var idleSince: [Int64?] = []

    var isEmpty: Bool { ids.isEmpty }

    mutating func addHot(_ write: RoomWrite) {
        ids.append(write.room.id)
        versions.append(write.expectedVersion)
        fields.append(RoomFields(write.room))
    }

    mutating func add(_ write: RoomWrite, _ texts: inout DefinitionTexts) throws(StoreError) {
        let room = write.room
        var (definition, sessionDefinition): (String?, String?)
        if let found = room.definition { definition = try texts.text(found) }
        if let found = room.session?.definition, found != room.definition {
            sessionDefinition = try texts.text(found)
        }
        addHot(write)
        definitions.append(definition)
        sessionDefinitions.append(sessionDefinition)
        idleSince.append(RoomFields.idleSince(room))
    }

    func fillHot(_ parameters: inout Parameters) {
        parameters.add(ids)
        parameters.add(versions)
        parameters.add(fields.map(\.sequence))
        parameters.add(fields.map(\.session))
        parameters.add(fields.map(\.isOpen))
        parameters.add(fields.map(\.connected))
        parameters.add(fields.map(\.changedAt))
        parameters.add(fields.map(\.startedAt))
        parameters.add(fields.map(\.endsAt))
        parameters.add(fields.map(\.extensions))
        parameters.add(fields.map(\.announced))
        parameters.add(fields.map(\.extenderKind))
        parameters.addBytes(fields.map(\.extendedBy))
        parameters.add(fields.map(\.endedAt))
        parameters.add(fields.map(\.cause))
        parameters.add(fields.map(\.dueAt))
    }

    func fillAll(_ parameters: inout Parameters) {
        fillHot(&parameters)
        parameters.addTexts(definitions)
        parameters.addTexts(sessionDefinitions)
        parameters.add(fields.map(\.phase))
        parameters.add(idleSince)
    }
}
