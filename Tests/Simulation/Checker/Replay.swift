import Contract
import MemoryStore
import RoomCore
import Store
import Worker

/// Decides the whole history again by the rules, in the order of the sequence numbers: the same events, the same
/// answers, and at the end the same rooms. Only for runs in which every command has an id.
struct Replay {
    private let history: History
    private let cluster: Cluster
    private let settings: RoomSettings
    private let source: String
    private var intents: [CommandKey: [Intent]] = [:]
    private var rooms: [RoomID: Room] = [:]
    private var participants: [RoomID: [UserID: Participant]] = [:]
    private var found: [String] = []

    init(world: World, cluster: Cluster, clients: Clients) {
        history = world.history
        self.cluster = cluster
        settings = world.scenario.worker.rooms
        source = world.scenario.worker.source
        for publish in clients.publishes {
            if let key = publish.intent.key { intents[key, default: []].append(publish.intent) }
        }
    }

    func violations() -> [String] {
        var replay = self
        for commit in history.commits {
            for room in commit.batch.rooms.map(\.room.id) { replay.play(commit.batch, in: room) }
            if !replay.found.isEmpty { return replay.found }
        }
        for (id, stored) in cluster.disk.rooms.sorted(by: { $0.key < $1.key }) {
            guard replay.rooms[id] == stored.room else {
                return ["I2: \(id) is stored otherwise than its commands make it"]
            }
            guard let session = stored.room.session, session.isLive else { continue }
            let stored = cluster.disk.connected(to: id, session: session.number)
            let expected = (replay.participants[id] ?? [:]).values.sorted { $0.user < $1.user }
            if stored != expected { return ["I2: others are in \(id) than its commands make it"] }
        }
        return []
    }

    private mutating func play(_ batch: BatchCommit, in room: RoomID) {
        var drafts = batch.outbox.filter { $0.room == room }[...]
        for answer in batch.answers where answer.key.room == room {
            guard let reply = ReplyDecoder.decode(answer.reply), let time = reply.serverTime else {
                return found.append("I2: the answer to \(answer.key.id) cannot be read")
            }
            let sequence = reply.whole["sequence"]?.integer ?? 0
            while let next = drafts.first, next.sequence <= sequence, Self.isOfTime(next) {
                advance(&drafts, in: room)
                guard found.isEmpty else { return }
            }
            decide(answer, at: time, &drafts)
            guard found.isEmpty else { return }
        }
        while !drafts.isEmpty, found.isEmpty { advance(&drafts, in: room) }
    }

    /// An event that the passing of time makes.
    private static func isOfTime(_ draft: OutboxDraft) -> Bool { EventFact(draft.body)?.lateBy != nil }

    private mutating func advance(_ drafts: inout ArraySlice<OutboxDraft>, in room: RoomID) {
        guard let draft = drafts.first, let fact = EventFact(draft.body) else { return }
        let transition = (rooms[room] ?? Room(id: room)).advanced(to: Instant(milliseconds: fact.time))
        guard !transition.events.isEmpty else {
            return found.append("I2: no command made \(draft.messageID)")
        }
        take(transition, &drafts, in: room, of: "time")
    }

    private mutating func decide(
        _ answer: AnswerWrite, at time: Instant, _ drafts: inout ArraySlice<OutboxDraft>
    ) {
        let room = answer.key.room
        let candidates = (intents[answer.key] ?? []).filter { intent in
            intent.command.map { CommandText.canonical($0) == answer.canonical } ?? false
        }
        for intent in candidates {
            guard let command = intent.command else { continue }
            var participant: Participant?
            if case .user(let user) = intent.actor { participant = participants[room]?[user] }
            let decision = (rooms[room] ?? Room(id: room)).decide(
                command, by: intent.actor, participant: participant, at: time, settings: settings)
            guard ReplyEncoder.encode(decision: decision, command: command) == answer.reply else { continue }
            return take(decision.transition, &drafts, in: room, of: answer.key.id.text)
        }
        found.append("I2: the rules answer \(answer.key.id) in \(room) otherwise")
    }

    private mutating func take(
        _ transition: Transition, _ drafts: inout ArraySlice<OutboxDraft>, in room: RoomID, of name: String
    ) {
        for event in transition.events {
            guard let draft = drafts.popFirst(), EventEncoder.encode(event, source: source).body == draft.body
            else { return found.append("I2: \(name) makes another \(room):\(event.sequence)") }
        }
        if rooms[room]?.sessionNumber != transition.room.sessionNumber { participants[room] = [:] }
        switch transition.participant {
        case .connected(let participant): participants[room, default: [:]][participant.user] = participant
        case .left(let user): participants[room]?[user] = nil
        case nil: break
        }
        if transition.isChange { rooms[room] = transition.room }
    }
}
