import AMQP
import Contract
import RoomCore
import Store

/// I3 and I4: what is durable is published and nothing else; in each room in order, without a gap, with equal copies.
struct EventCheck {
    private let history: History
    private let audit: [Message]
    private let everything: [Message]
    private var drafts: [String: OutboxDraft] = [:]
    private var found: [String] = []
    private var last: [RoomID: Int64] = [:]

    init(world: World, broker: Broker) {
        history = world.history
        audit = broker.queue(Simulation.audit)?.ready.map(\.message) ?? []
        everything = world.history.published
        var position: Int64 = 0
        for commit in history.commits {
            for (draft, at) in zip(commit.batch.outbox, commit.positions) {
                if at <= position { found.append("I4: position \(at) came after \(position)") }
                position = at
                if draft.sequence != (last[draft.room] ?? 0) + 1 {
                    found.append("I4: \(draft.messageID) follows \(last[draft.room] ?? 0)")
                }
                last[draft.room] = draft.sequence
                if drafts.updateValue(draft, forKey: draft.messageID) != nil {
                    found.append("I3: \(draft.messageID) was made twice")
                }
            }
        }
    }

    func violations() -> [String] {
        var found = found
        for message in everything {
            if let problem = difference(message) { found.append(problem) }
        }
        var next: [RoomID: Int64] = [:]
        for message in audit {
            guard let id = message.properties.messageID?.string, let draft = drafts[id] else { continue }
            let expected = (next[draft.room] ?? 0) + 1
            if draft.sequence > expected {
                found.append("I4: \(id) came before \(draft.room):\(expected)")
                next[draft.room] = draft.sequence
            } else if draft.sequence == expected {
                next[draft.room] = expected
            }
        }
        for (room, sequence) in last.sorted(by: { $0.key < $1.key }) where (next[room] ?? 0) < sequence {
            found.append("I3: \(room) has \(sequence) events, \(next[room] ?? 0) were published")
        }
        return found
    }

    /// Whether a copy is what is stored.
    private func difference(_ message: Message) -> String? {
        guard let id = message.properties.messageID?.string, let draft = drafts[id] else {
            return "I3: \(message.name) was published and is not stored"
        }
        let properties = EventEncoder.properties(
            type: draft.type, id: draft.messageID, room: draft.room, sequence: draft.sequence,
            seconds: draft.timestamp, trace: draft.trace)
        guard message.body == draft.body, message.properties == properties,
            message.routingKey.string == draft.type
        else { return "I3: a copy of \(id) differs" }
        return nil
    }
}
