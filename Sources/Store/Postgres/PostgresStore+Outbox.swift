import RoomCore

extension PostgresStore {
    /// How many events are looked for in one transaction where all are taken over.
    private static let inheritedAtOnce = 1_000

    package func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage] {
        let owner = run?.id ?? ""
        func fill(_ parameters: inout Parameters) {
            parameters.add(owner)
            parameters.add(position)
            parameters.add(max(limit, 0))
        }
        // From the beginning: with what nobody else publishes any more.
        if position <= 0 { try inheritAll(owner) }
        return try Self.messages(ask(.unpublished, fill))
    }

    /// In pieces, as it may be everything that was decided in the hours for which a broker was away.
    private func inheritAll(_ owner: String) throws(StoreError) {
        var last: Int64? = 0
        while let position = last {
            last = try transactionGivingAnswers([PostgresConnection.Call(.lockInheritance)]) { _ in
                [
                    PostgresConnection.Call(.inheritAll) { parameters in
                        parameters.add(owner)
                        parameters.add(position)
                        parameters.add(Self.inheritedAtOnce)
                    }
                ]
            }[0].optionalInteger(0, 0)
        }
    }

    package func inherit(limit: Int) throws(StoreError) -> [OutboxMessage] {
        let owner = run?.id ?? ""
        let answers = try transactionGivingAnswers([PostgresConnection.Call(.lockInheritance)]) { _ in
            [
                PostgresConnection.Call(.inherit) { parameters in
                    parameters.add(owner)
                    parameters.add(max(limit, 0))
                }
            ]
        }
        return try Self.messages(answers[0])
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
