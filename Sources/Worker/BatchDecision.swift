import AMQP
import Contract
import RoomCore
import Service
import Store

/// A command as it waits to be decided. A reference to what never changes, as its delivery is.
final class PendingCommand {
    let job: UInt64
    let command: Command
    let actor: Actor
    /// The trace it belongs to, which its events carry on; nil for none.
    let trace: TraceParent?
    /// As it came, should it have to be given up.
    let delivery: Delivery
    /// The consuming channel that it came on.
    let channel: Int
    /// Where the answer goes; nil for nowhere.
    let reply: ReplyAddress?
    /// A durable mark of the attempt to decide it, removed by the command's own commit; nil for none.
    let attempt: AttemptKey?
    /// When it arrived, by the monotonic clock.
    let arrivedAt: Int64

    init(
        job: UInt64, command: Command, actor: Actor, trace: TraceParent?, delivery: Delivery, channel: Int,
        reply: ReplyAddress?, attempt: AttemptKey?, arrivedAt: Int64
    ) {
        self.job = job
        self.command = command
        self.actor = actor
        self.trace = trace
        self.delivery = delivery
        self.channel = channel
        self.reply = reply
        self.attempt = attempt
        self.arrivedAt = arrivedAt
    }
}

/// A tick as it waits to be decided.
struct PendingTick {
    let job: UInt64
    let rooms: [RoomID]
    let reply: ReplyAddress?
}

/// The event behind a draft, and the command that led to it; nil where time alone did.
struct EventOrigin {
    let event: Event
    let command: PendingCommand?
}

/// Rooms brought up to date with one batch: ticks first, then commands in order. Pure: what it decided is in
/// `commit`, `answers` and `events`, and none of it may be told to anybody before the commit has succeeded.
struct BatchDecision {
    private struct WorkingRoom {
        var room: Room
        let version: Int64
        var isChanged = false
        /// Who is connected, as far as this batch has changed it.
        var participants: [UserID: Participant?] = [:]
        /// True where a new session began in this batch: nobody loaded from the store is in it.
        var isNewSession = false
    }

    private let state: BatchState
    private let settings: RoomSettings
    private let source: String
    /// In the order in which they were first looked at.
    private var rooms: [WorkingRoom] = []
    private var places: [RoomID: Int] = [:]
    private var stored: [CommandKey: StoredAnswer]
    private(set) var commit = BatchCommit()
    /// Where each drafted event comes from, in the order of the drafts.
    private(set) var origins: [EventOrigin] = []
    /// Command answers by job, as encoded.
    private(set) var answers: [(job: UInt64, reply: ReplyAddress, body: [UInt8])] = []
    /// Per tick how its rooms stand.
    private(set) var tickAnswers: [(reply: ReplyAddress, answer: TickAnswer)] = []
    private(set) var notes = Notes()

    /// Counts for the log and the metrics.
    struct Notes {
        var applied = 0
        var refused = 0
        var repeated = 0
        var announced = 0
        var commands = CommandCounts()
        /// Commands and rooms of ticks.
        var items = 0
        /// How late, in milliseconds, each room was whose windows or end a tick brought up.
        var lateness: [Int64] = []
    }

    init(state: BatchState, settings: RoomSettings, source: String) {
        self.state = state
        self.settings = settings
        self.source = source
        stored = state.answers
        // Most batches have one new answer for each of their rooms.
        stored.reserveCapacity(state.answers.count + state.rooms.count)
        places.reserveCapacity(state.rooms.count)
        rooms.reserveCapacity(state.rooms.count)
    }

    /// What must be loaded for a batch. A room may stand in it many times; the store looks it up once.
    static func request(ticks: [PendingTick], commands: [PendingCommand]) -> BatchRequest {
        var request = BatchRequest()
        for tick in ticks { request.rooms += tick.rooms }
        for pending in commands {
            let command = pending.command
            if case .user(let user) = pending.actor {
                request.participants.append(ParticipantKey(room: command.room, user: user))
            } else {
                request.rooms.append(command.room)
            }
            if let id = command.id { request.keys.append(CommandKey(room: command.room, id: id)) }
        }
        return request
    }

    // MARK: Deciding

    /// Brings each room of a tick up to `now`.
    mutating func decide(_ tick: PendingTick, now: Instant) {
        var rows: [TickAnswer.Row] = []
        rows.reserveCapacity(tick.rooms.count)
        notes.items += tick.rooms.count
        for id in tick.rooms {
            let place = place(of: id)
            let transition = rooms[place].room.advanced(to: now)
            if !transition.events.isEmpty, let dueAt = rooms[place].room.dueAt {
                notes.lateness.append(max(now.milliseconds - dueAt.milliseconds, 0))
            }
            apply(transition, at: place)
            rows.append(
                TickAnswer.Row(
                    room: id, nextDueAt: transition.room.dueAt, sequence: transition.room.sequence))
            notes.announced += transition.events.count
        }
        if let reply = tick.reply { tickAnswers.append((reply, TickAnswer(serverTime: now, rooms: rows))) }
    }

    /// Decides one command, or repeats the stored answer of its key.
    mutating func decide(_ pending: PendingCommand, now: Instant) {
        let command = pending.command
        notes.items += 1
        if let attempt = pending.attempt {
            commit.clearedAttempts.append(attempt)
        } else if pending.delivery.redelivered {
            // Whoever had it before may have marked it, and lost it with a connection.
            commit.clearedAttempts.append(CrashGuard.key(of: pending.delivery))
        }
        guard let id = command.id else {
            let decision = decision(for: pending, now: now)
            answer(pending, with: ReplyEncoder.encode(decision: decision, command: command))
            return
        }
        let key = CommandKey(room: command.room, id: id)
        let canonical = CommandText.canonical(command)
        if let earlier = stored[key] {
            guard earlier.canonical == canonical else {
                let refusal = Refusal(
                    .idReused, "this id was used before with another command: a new command needs a new id")
                let place = place(of: command.room)
                let decision = rooms[place].room.refuse(refusal, at: now)
                apply(decision.transition, at: place, for: pending)
                notes.refused += 1
                notes.commands.note(command.action.name, .refused)
                return answer(pending, with: ReplyEncoder.encode(decision: decision, command: command))
            }
            let place = place(of: command.room)
            apply(rooms[place].room.advanced(to: now), at: place, for: pending)
            notes.repeated += 1
            notes.commands.note(command.action.name, .repeated)
            return answer(pending, with: earlier.reply)
        }
        let decision = decision(for: pending, now: now)
        let reply = ReplyEncoder.encode(decision: decision, command: command)
        if command.action != .status {
            stored[key] = StoredAnswer(canonical: canonical, reply: reply, outboxPositionUpTo: nil)
            commit.answers.append(
                AnswerWrite(
                    key: key, canonical: canonical, reply: reply,
                    session: decision.transition.room.sessionNumber, at: decision.transition.judgedAt))
        }
        answer(pending, with: reply)
    }

    private mutating func decision(for pending: PendingCommand, now: Instant) -> Decision {
        let command = pending.command
        let place = place(of: command.room)
        var participant: Participant?
        if case .user(let user) = pending.actor { participant = connection(of: user, at: place) }
        let decision = rooms[place].room.decide(
            command, by: pending.actor, participant: participant, at: now, settings: settings)
        apply(decision.transition, at: place, for: pending)
        if case .refused = decision.outcome {
            notes.refused += 1
            notes.commands.note(command.action.name, .refused)
        } else {
            notes.applied += 1
            notes.commands.note(command.action.name, .applied)
        }
        return decision
    }

    private mutating func answer(_ pending: PendingCommand, with body: [UInt8]) {
        if let reply = pending.reply { answers.append((pending.job, reply, body)) }
    }

    // MARK: The rooms of the batch

    /// Where a room stands among those of the batch; taken from the store's state at the first look.
    private mutating func place(of id: RoomID) -> Int {
        if let place = places[id] { return place }
        let loaded = state.rooms[id]
        places[id] = rooms.count
        rooms.append(WorkingRoom(room: loaded?.room ?? Room(id: id), version: loaded?.version ?? 0))
        return rooms.count - 1
    }

    private func connection(of user: UserID, at place: Int) -> Participant? {
        if let changed = rooms[place].participants[user] { return changed }
        if rooms[place].isNewSession { return nil }
        return state.participants[ParticipantKey(room: rooms[place].room.id, user: user)]
    }

    private mutating func apply(_ transition: Transition, at place: Int, for command: PendingCommand? = nil) {
        guard transition.isChange else { return }
        let id = transition.room.id
        let before = rooms[place].room.sessionNumber
        rooms[place].isChanged = true
        rooms[place].room = transition.room
        if before != transition.room.sessionNumber {
            rooms[place].participants = [:]
            rooms[place].isNewSession = true
        }
        if let change = transition.participant {
            switch change {
            case .connected(let participant):
                rooms[place].participants.updateValue(participant, forKey: participant.user)
            case .left(let user):
                rooms[place].participants.updateValue(nil, forKey: user)
            }
            commit.participants.append(
                ParticipantWrite(room: id, session: transition.room.sessionNumber, change: change))
        }
        for event in transition.events {
            let encoded = EventEncoder.encode(event, source: source, trace: command?.trace)
            commit.outbox.append(
                OutboxDraft(
                    room: id, sequence: event.sequence, type: encoded.type, messageID: encoded.id,
                    timestamp: event.time.milliseconds / 1_000, body: encoded.body,
                    trace: command?.trace?.text))
            origins.append(EventOrigin(event: event, command: command))
        }
    }

    /// The commit of everything decided, with the version of every room looked at.
    mutating func finish(published: [Int64]) {
        commit.rooms = rooms.map {
            RoomWrite(room: $0.room, expectedVersion: $0.version, isChanged: $0.isChanged)
        }
        commit.published = published
    }
}
