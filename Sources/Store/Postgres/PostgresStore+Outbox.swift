import RoomCore

extension PostgresStore {
    package func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage] {
        let owner = run?.id ?? ""
        func fill(_ parameters: inout Parameters) {
            parameters.add(owner)
            parameters.add(position)
            parameters.add(max(limit, 0))
        }
        // From the beginning: with what nobody else publishes any more.
        if position <= 0 {
            _ = try transaction([PostgresConnection.Call(.lockInheritance)]) { _ in
                ([PostgresConnection.Call(.inheritAll) { $0.add(owner) }], ())
            }
        }
        return try Self.messages(ask(.unpublished, fill))
    }

    package func inherit(limit: Int) throws(StoreError) -> [OutboxMessage] {
        let owner = run?.id ?? ""
        let answers = try ask([
            PostgresConnection.Call(.begin), PostgresConnection.Call(.lockInheritance),
            PostgresConnection.Call(.inherit) { parameters in
                parameters.add(owner)
                parameters.add(max(limit, 0))
            },
            PostgresConnection.Call(.commit),
        ])
        return try Self.messages(answers[2])
    }

    package func markPublished(_ positions: [Int64]) throws(StoreError) {
        guard !positions.isEmpty else { return }
        // If the server forgets it, events are published once more.
        try transaction([PostgresConnection.Call(.relax)]) { _ in
            ([PostgresConnection.Call(.removeOutbox) { $0.add(positions.sorted()) }], ())
        }
    }

    static func messages(_ answer: Answer) throws(StoreError) -> [OutboxMessage] {
        var messages: [OutboxMessage] = []
        messages.reserveCapacity(answer.count)
        for row in 0..<answer.count {
            let draft = OutboxDraft(
                room: RoomID(try name(answer, row, 2)), sequence: answer.integer(row, 3),
                type: try name(answer, row, 4), messageID: try name(answer, row, 5),
                timestamp: answer.integer(row, 6), body: answer.bytes(row, 7), trace: answer.text(row, 8),
                format: answer.integer(row, 1))
            messages.append(OutboxMessage(position: answer.integer(row, 0), draft: draft))
        }
        return messages
    }
}
