import AMQP
import Contract
import Metrics
import RoomCore
import Service
import Store

/// Serving: one batch of ticks and commands from delivery to commit.
extension Worker {
    /// Does one batch. Returns whether more work waits.
    func serve(at uptime: Int64) -> Bool {
        guard outbox.held < settings.eventBound else { return false }
        tryAside(at: uptime)
        guard mayServe, !intake.isEmpty else { return !health.isFailing && phase != .serving }
        // Behind a failure each is tried alone.
        let isWary = health.isWary
        var ticks = intake.takeTicks(batchSize: isWary ? 1 : settings.batchSize)
        let rooms = ticks.reduce(0) { $0 + $1.tick.rooms.count }
        if isWary { health.tried(rooms: rooms) }
        let hasSuspects = intake.judge(first: settings.batchSize) { guardian.isSuspect($0) }
        if !ticks.isEmpty, isWary || hasSuspects {
            // Decided before commands are marked: what a tick does must not count against them.
            let isDone = process(ticks: ticks[...], commands: [], isAlone: isWary, at: uptime)
            ticks = []
            guard isDone, mayServe else { return !health.isFailing }
        }
        let commands = takeCommands(atMost: isWary ? 1 : settings.batchSize - rooms, at: uptime)
        if isWary { health.tried(commands: 1) }
        if health.isFailing {
            putBack(ticks: ticks, commands: commands)
        } else {
            _ = process(ticks: ticks[...], commands: commands[...], isAlone: isWary, at: uptime)
        }
        guard !health.isFailing else { return false }
        return phase != .serving || !intake.isEmpty && outbox.held < settings.eventBound
    }

    private var mayServe: Bool { phase == .serving && !health.isFailing }

    /// Takes commands from the front and decodes them; what is none becomes a dead letter.
    private func takeCommands(atMost count: Int, at uptime: Int64) -> [PendingCommand] {
        var taken: [Intake.WaitingCommand] = []
        var bytes = 0
        while taken.count < count, bytes < settings.batchBytes, let waiting = intake.takeCommand() {
            if case .bytes(let body) = waiting.delivery.body { bytes += body.count }
            taken.append(waiting)
        }
        if taken.contains(where: { $0.isSuspect == true }) { taken = mark(taken, at: uptime) }
        return taken.compactMap { waiting in
            let command = decode(waiting, at: uptime)
            // No command, so no commit of its own: it did no harm, and a later crash must not count against it.
            if command == nil, let attempt = waiting.attempt { unmark(attempt, at: uptime) }
            return command
        }
    }

    /// Marks the suspects among commands durably, and puts back what must not be decided together with the first. One that
    /// a crashed run had marked goes alone, and is given up where that was too often. Empty where there is nothing to
    /// decide now.
    private func mark(_ taken: [Intake.WaitingCommand], at uptime: Int64) -> [Intake.WaitingCommand] {
        let keys = taken.map { waiting in
            waiting.isSuspect == true ? waiting.attempt ?? CrashGuard.key(of: waiting.delivery) : nil
        }
        do throws(StoreError) {
            let crashes = try store.crashes(of: keys.compactMap { $0 })
            let firstAlone = keys.firstIndex { key in key.flatMap { crashes[$0] } != nil }
            var chosen = taken[..<(firstAlone.map { max($0, 1) } ?? taken.count)]
            if firstAlone == 0, let key = keys[0], let count = crashes[key], count >= settings.attempts {
                intake.putBack(Array(taken.dropFirst()))
                giveUp(taken[0], after: count, key, at: uptime)
                return []
            }
            try store.markAttempts(
                chosen.indices.compactMap { chosen[$0].attempt == nil ? keys[$0] : nil }, run: identity.id)
            for index in chosen.indices { chosen[index].attempt = keys[index] }
            intake.putBack(Array(taken[chosen.endIndex...]))
            return Array(chosen)
        } catch {
            intake.putBack(taken)
            storeFailed(error, at: uptime)
            return []
        }
    }

    private func giveUp(
        _ waiting: Intake.WaitingCommand, after crashes: Int, _ key: AttemptKey, at uptime: Int64
    ) {
        let detail = "the worker crashed \(crashes) times while this message was being decided"
        deadLetter(
            waiting.delivery, on: waiting.channel, reason: "crashed_worker", detail: detail, at: uptime)
        unmark(key, at: uptime)
    }

    /// Removes a message's marks, where no commit of its own does.
    func unmark(_ key: AttemptKey, at uptime: Int64) {
        do throws(StoreError) {
            _ = try store.commit(BatchCommit(clearedAttempts: [key]))
        } catch {
            storeFailed(error, at: uptime)
        }
    }

    /// Decodes a command; nil for none, and where its room is aside: there it waits as well, unless it is `tried`.
    private func decode(
        _ waiting: Intake.WaitingCommand, tried: Bool = false, at uptime: Int64
    ) -> PendingCommand? {
        let delivery = waiting.delivery
        let properties = delivery.properties
        guard case .bytes(let body) = delivery.body else {
            rejectOversized(delivery, on: waiting.channel, at: uptime)
            return nil
        }
        let prefix = settings.topology.prefix
        guard ReplyTarget.check(replyTo: properties.replyTo, prefix: prefix) != .forbidden else {
            let refusal = ReplyTarget.refusal(prefix: prefix)
            deadLetter(
                delivery, on: waiting.channel, reason: refusal.reasonWord, detail: refusal.detail, at: uptime)
            return nil
        }
        switch CommandDecoder.decode(body: body, properties: properties) {
        case .failure(let invalid):
            deadLetter(
                delivery, on: waiting.channel, reason: invalid.reasonWord, detail: invalid.detail,
                answer: ReplyEncoder.encode(invalid: invalid, serverTime: now), at: uptime)
            return nil
        case .success(let command):
            if !waiting.isAgain { meters.noteAge(timestamp: properties.timestamp, now: now) }
            if !tried, aside.contains(command.room) {
                aside.add(
                    Intake.WaitingCommand(
                        delivery: delivery, channel: waiting.channel, at: waiting.at, isAgain: true),
                    to: command.room)
                return nil
            }
            let job = jobs.begin(delivery.tag, on: waiting.channel, since: waiting.at)
            return PendingCommand(
                job: job, command: command, actor: actor(of: command, properties),
                trace: TraceParent(properties), delivery: delivery, channel: waiting.channel,
                reply: replyAddress(of: properties), attempt: waiting.attempt, arrivedAt: waiting.at)
        }
    }

    /// A command without a user is an operator's, where the broker vouches for one.
    private func actor(of command: Command, _ properties: Properties) -> Actor {
        if let user = command.user { return .user(user) }
        guard let name = properties.userID?.string, settings.operators.contains(name) else { return .nobody }
        return .operator(name)
    }

    // MARK: Deciding and committing

    /// Decides and commits a batch, `isAlone` where it is a single suspect. Where the store fails it goes back to the
    /// front of the intake, with what was to come behind it: false then, and nothing may be taken out of turn.
    func process(
        ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>,
        behind: (ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>) = ([], []),
        isAlone: Bool, at uptime: Int64
    ) -> Bool {
        guard !ticks.isEmpty || !commands.isEmpty else { return true }
        do throws(StoreError) {
            let decision = try decide(ticks: ticks.map { withoutAside($0.tick) }, commands: Array(commands))
            finish(decision, commands: Array(commands), at: uptime)
            for tick in ticks where tick.isLast { jobs.finishIfSettled(tick.tick.job) }
            return true
        } catch {
            if error.isConflict {
                return halve(
                    ticks: ticks, commands: commands, behind: behind, isAlone: isAlone, at: uptime)
            }
            if error.isBatchFault {
                return isolate(error, ticks: ticks, commands: commands, behind: behind, at: uptime)
            }
            if isAlone, setAside(ticks, commands, error, at: uptime) { return true }
            putBack(
                ticks: Array(ticks + behind.ticks), commands: Array(commands + behind.commands),
                suspects: (commands.count, ticks.reduce(0) { $0 + $1.tick.rooms.count }))
            storeFailed(error, at: uptime)
            return false
        }
    }

    private static let triesInTurn = 64

    typealias TakenTick = (tick: PendingTick, isLast: Bool)

    /// A tick but for rooms that are aside: they have times of their own, and the scheduler fires again.
    private func withoutAside(_ tick: PendingTick) -> PendingTick {
        guard !aside.isEmpty else { return tick }
        return PendingTick(
            job: tick.job, rooms: tick.rooms.filter { !aside.contains($0) }, reply: tick.reply)
    }

    // MARK: The store fails

    /// Holds what was taken; it is decoded again when its turn comes.
    func putBack(
        ticks: [TakenTick], commands: [PendingCommand], suspects: (commands: Int, rooms: Int) = (0, 0)
    ) {
        for command in commands { jobs.abandon(command.job) }
        intake.putBack(commands.map(\.waiting))
        intake.putBack(ticks)
        health.suspect(commands: suspects.commands, rooms: suspects.rooms)
    }

    /// Sets a single suspect aside; false where it is the store that fails.
    private func setAside(
        _ ticks: ArraySlice<TakenTick>, _ commands: ArraySlice<PendingCommand>, _ error: StoreError,
        at uptime: Int64
    ) -> Bool {
        if let (tick, isLast) = ticks.first, let room = tick.rooms.first {
            guard setAside(room, nil, error, at: uptime) else { return false }
            if isLast { jobs.finishIfSettled(tick.job) }
            return true
        }
        guard let command = commands.first else { return false }
        var waiting = command.waiting
        waiting.attempt = nil
        guard setAside(command.command.room, waiting, error, at: uptime) else { return false }
        jobs.abandon(command.job)
        // It may wait for long: a crash meanwhile must not count against it.
        if let attempt = command.attempt { unmark(attempt, at: uptime) }
        return true
    }

    /// Tries rooms that are aside until the store fails on one again.
    private func tryAside(at uptime: Int64) {
        for _ in 0..<Self.triesInTurn {
            guard mayServe, outbox.held < settings.eventBound, let (room, waiting) = aside.due(at: uptime)
            else { return }
            let command = waiting.flatMap { decode($0, tried: true, at: uptime) }
            let tick = PendingTick(job: 0, rooms: [room], reply: nil)
            do throws(StoreError) {
                let commands = command.map { [$0] } ?? []
                finish(
                    try decide(ticks: commands.isEmpty ? [tick] : [], commands: commands),
                    commands: commands, at: uptime)
                intake.putBack(Array(aside.release(room).dropFirst()))
                log.info("a room that was set aside is served again", ["room": room.text])
            } catch {
                if let command { jobs.abandon(command.job) }
                if error.isConflict {
                    aside.failed(room, at: uptime)
                } else if error.isBatchFault {
                    // No matter for waiting: it is told in its turn.
                    intake.putBack(aside.release(room))
                } else {
                    aside.failed(room, at: uptime)
                    guard isLocal(error) else { return storeFailed(error, at: uptime) }
                    counters.storeFailures += 1
                    drainAgain()
                }
            }
        }
    }

    /// The store is healthy and refuses the batch: one at a time, and what fails alone is given up.
    private func isolate(
        _ error: StoreError, ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>,
        behind: (ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>), at uptime: Int64
    ) -> Bool {
        let count = ticks.reduce(commands.count) { $0 + $1.tick.rooms.count }
        guard count == 1 else {
            log.warning(
                "batch refused by the store: tried one by one", ["error": error.description, "count": count])
            let singles = ticks.flatMap { tick, isLast in
                tick.rooms.enumerated().map { index, room in
                    TakenTick(
                        tick: PendingTick(job: tick.job, rooms: [room], reply: tick.reply),
                        isLast: isLast && index == tick.rooms.count - 1)
                }
            }
            for index in singles.indices {
                let isDone = process(
                    ticks: singles[index...index], commands: [],
                    behind: (singles[(index + 1)...] + behind.ticks, commands + behind.commands),
                    isAlone: false, at: uptime)
                guard isDone else { return false }
            }
            for index in commands.indices {
                let isDone = process(
                    ticks: [], commands: commands[index...index],
                    behind: (behind.ticks, commands[(index + 1)...] + behind.commands),
                    isAlone: false, at: uptime)
                guard isDone else { return false }
            }
            return true
        }
        for (tick, isLast) in ticks {
            log.error(
                "room refused by the store", ["room": tick.rooms.first?.text, "error": error.description])
            if isLast { jobs.finishIfSettled(tick.job) }
        }
        for command in commands {
            jobs.abandon(command.job)
            if let attempt = command.attempt { unmark(attempt, at: uptime) }
            deadLetter(
                command.delivery, on: command.channel, reason: "store_refused", detail: error.description,
                at: uptime)
        }
        guard health.isFailing else { return true }
        putBack(ticks: Array(behind.ticks), commands: Array(behind.commands))
        return false
    }

    private static let triesOfBatch = 3
    /// What is left of a batch that was halved again and again is not set aside for a little bad luck.
    private static let triesOfOne = 10

    /// Loads, decides and commits; again where a room was changed by somebody else meanwhile.
    func decide(ticks: [PendingTick], commands: [PendingCommand]) throws(StoreError) -> Committed {
        var conflicts = 0
        let count = ticks.reduce(commands.count) { $0 + $1.rooms.count }
        let tries = count == 1 ? Self.triesOfOne : Self.triesOfBatch
        while true {
            let state = try load(BatchDecision.request(ticks: ticks, commands: commands))
            var decision = BatchDecision(state: state, settings: settings.rooms, source: settings.source)
            for tick in ticks { decision.decide(tick, now: state.now ?? now) }
            for command in commands { decision.decide(command, now: state.now ?? now) }
            decision.finish(published: published)
            do throws(StoreError) {
                let began = stopwatch()
                let positions = try store.commit(decision.commit)
                meters.storeCommit.observe(Double(stopwatch() &- began) / 1e9)
                published = []
                health.succeed()
                return Committed(decision: decision, positions: positions)
            } catch .conflict(let rooms) {
                conflicts += 1
                counters.conflicts += 1
                log.debug("room changed by another worker: decided again", ["room": rooms.first?.text])
                guard conflicts < tries else { throw .conflict(rooms) }
            }
        }
    }

    /// Of a shared store also its clock, and what others left unpublished: that goes out first.
    private func load(_ request: BatchRequest) throws(StoreError) -> BatchState {
        guard shared != nil else { return try store.load(request) }
        let asked = clock.nowMilliseconds()
        let state = try store.load(request)
        if let now = state.now {
            storeClock.learn(now, askedAt: asked, answeredAt: clock.nowMilliseconds())
        }
        takeOver(state.unsent)
        return state
    }

    struct Committed {
        let decision: BatchDecision
        let positions: [Int64]
    }

    /// It is durable: now it may be told.
    func finish(_ committed: Committed, commands: [PendingCommand], at uptime: Int64) {
        let decision = committed.decision
        for ((draft, origin), position) in zip(
            zip(decision.commit.outbox, decision.origins), committed.positions)
        {
            let job = origin.command?.job
            if let job { jobs.owe(1, to: job) }
            outbox.enqueue(OutboxMessage(position: position, draft: draft), job: job)
        }
        for answer in decision.answers {
            jobs.owe(1, to: answer.job)
            reply(answer.body, to: answer.reply, job: answer.job, at: uptime)
        }
        for (address, answer) in decision.tickAnswers {
            reply(answer.encode(), to: address, job: 0, at: uptime)
        }
        for command in commands { jobs.finishIfSettled(command.job) }
        counters.add(decision.notes, events: decision.commit.outbox.count)
        meters.add(decision.notes)
        decision.logEvents(to: log)
    }

    func reply(_ body: [UInt8], to address: ReplyAddress, job: UInt64, at uptime: Int64) {
        replies.enqueue(
            ReplyPublisher.Message(
                exchange: address.exchange, routingKey: address.queue, properties: address.properties,
                body: body,
                mandatory: false, job: job), at: uptime)
    }

    // MARK: Dead letters

    /// Gives a message up, with the reason; acknowledged once the dead letter is confirmed.
    func deadLetter(
        _ delivery: Delivery, on channel: Int, reason: String, detail: String, answer: [UInt8]? = nil,
        at uptime: Int64
    ) {
        guard case .bytes(let body) = delivery.body, letters.hasRoom(for: body) else {
            return rejectOversized(delivery, on: channel, at: uptime)
        }
        let job = jobs.begin(delivery.tag, on: channel)
        jobs.owe(1, to: job)
        letters.enqueue(
            ReplyPublisher.Message(
                exchange: settings.topology.dead, routingKey: delivery.routingKey,
                properties: DeadLetter.properties(
                    original: delivery.properties, reason: reason, detail: detail),
                body: body, mandatory: true, job: job), at: uptime)
        if let answer, let address = replyAddress(of: delivery.properties) {
            jobs.owe(1, to: job)
            reply(answer, to: address, job: job, at: uptime)
        }
        counters.deadLettered += 1
        meters.deadLetters[reason, default: 0] += 1
        log.warning(
            "dead-lettered",
            [
                "reason": reason, "detail": detail, "messageId": delivery.properties.messageID?.description,
                "publisher": delivery.properties.userID?.description,
            ])
    }

    /// A body too large to be held, by itself or beside others: the broker itself moves it to the dead letters, whole.
    private func rejectOversized(_ delivery: Delivery, on channel: Int, at uptime: Int64) {
        let size: UInt64 =
            switch delivery.body {
            case .bytes(let body): UInt64(body.count)
            case .discarded(let size): size
            }
        let invalid = InvalidCommand(.tooLarge, "the body has \(size) bytes; a command has at most 65536")
        if let address = replyAddress(of: delivery.properties) {
            reply(ReplyEncoder.encode(invalid: invalid, serverTime: now), to: address, job: 0, at: uptime)
        }
        consumer.reject(delivery.tag, requeue: false, on: channel)
        counters.deadLettered += 1
        meters.deadLetters[invalid.reasonWord, default: 0] += 1
        log.warning(
            "dead-lettered by the broker", ["reason": invalid.reasonWord, "bytes": Int64(clamping: size)])
    }
}

extension PendingCommand {
    /// As it waits, once it has been taken in vain.
    var waiting: Intake.WaitingCommand {
        Intake.WaitingCommand(
            delivery: delivery, channel: channel, at: arrivedAt, attempt: attempt, isAgain: true,
            isSuspect: attempt != nil)
    }
}

extension Counters {
    mutating func add(_ notes: BatchDecision.Notes, events: Int) {
        applied += Int64(notes.applied)
        refused += Int64(notes.refused)
        repeated += Int64(notes.repeated)
        announced += Int64(notes.announced)
        self.events += Int64(events)
        batches += 1
    }
}
