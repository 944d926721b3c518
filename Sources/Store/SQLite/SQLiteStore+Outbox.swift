import RoomCore

extension SQLiteStore {
    package func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage] {
        try reading { link throws(StoreError) in
            let row = link.statements.outboxPage
            defer { row.reset() }
            row.bind(1, position)
            row.bind(2, Int64(max(limit, 0)))
            var messages: [OutboxMessage] = []
            while try row.step() {
                let position = row.integer(0)
                guard let room = row.text(2), let type = row.text(4), let messageID = row.text(5) else {
                    throw .corrupt("the message at outbox position \(position) is not text")
                }
                messages.append(
                    OutboxMessage(
                        position: position,
                        draft: OutboxDraft(
                            room: RoomID(room), sequence: row.integer(3), type: type, messageID: messageID,
                            timestamp: row.integer(6), body: row.bytes(7), trace: row.text(8),
                            format: row.integer(1))))
            }
            return messages
        }
    }

    package func markPublished(_ positions: [Int64]) throws(StoreError) {
        guard !positions.isEmpty else { return }
        let removed = try writing { link throws(StoreError) in try remove(positions, link) }
        counts?.outbox -= removed
    }
}
