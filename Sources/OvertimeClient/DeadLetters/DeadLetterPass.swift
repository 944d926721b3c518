internal import AMQP
internal import Contract
import Service

/// One pass over the dead letters; see `DeadLetterBox`.
///
/// The first look at the queue asks what to do with each letter, and does it with those that were returned to the queue
/// before. The others are only returned by it, and the second look does what was asked. Further ones follow for as long
/// as acknowledged letters are found in the queue again; see `LetterBag`.
final class DeadLetterPass {
    typealias Judge = (LetterID, Letter) -> DeadLetterBox.Verdict

    private enum Event: Sendable {
        case reader(LinkEvent)
        case publisher(LinkEvent)
    }

    private let mailbox = Mailbox<Event>()
    private let queue: ShortString
    private let reader: DeadLetterReader
    private let publisher: RetryPublisher?
    private var pass = DeadLetterBox.Pass()
    private var numbering = LetterNumbering()
    private var lastError: AMQPError?
    private var restarts = 0

    /// Of the present look: how many letters there are, how many have come.
    private var count: Int?
    private var looked = 0
    private var isClosing = false
    /// After the look: how many letters must be there again, and until when that is waited for.
    private var awaited: (letters: Int, until: Int64)?
    private var recountAt: Int64?
    private var isLookingAgain = false
    /// What was acknowledged in the present look, and in the one before.
    private var settled = LetterBag()
    private var settledBefore = LetterBag()
    /// What came and was not acknowledged: it must come again.
    private var kept = LetterBag()
    private var keptBefore = LetterBag()
    /// Acknowledged last, which the reader may keep back; then it must come again too.
    private var lastSettled: LetterBag.Key?
    private var heldBefore: LetterBag.Key?
    private var postponed = PostponedLetters()
    private var looks = 0
    private var hasActed = false
    private var isDone = false
    private var isCertain = true

    /// How long the broker may take for the next letter; longer, and somebody else has it.
    private static let patience: Int64 = 3_000
    private static let recountInterval: Int64 = 10
    /// How many looks wait for letters of the first that do not come back: somebody else has them.
    private static let maximumLooksForPostponed = 3

    init(connection: LinkConfiguration, topology: Topology, publishes: Bool) {
        let mailbox = mailbox
        queue = topology.dead
        reader = DeadLetterReader(
            connection: connection, queue: queue, observer: { mailbox.put($0.map { Event.reader($0) }) })
        publisher =
            publishes
            ? RetryPublisher(
                connection: connection, exchange: topology.commandsExchange,
                observer: { mailbox.put($0.map { Event.publisher($0) }) }) : nil
    }

    func close() {
        reader.stop()
        publisher?.close()
    }

    func run(until deadline: Int64, restarted: () -> Void, judge: Judge) -> DeadLetterBox.Pass {
        var heardAt = MonotonicClock.milliseconds()
        while !isDone {
            let now = MonotonicClock.milliseconds()
            guard now < deadline else { return given(up: timeUp) }
            // The broker counted letters that do not come: another reader holds them, or they were taken.
            let isQuiet = isReading && now - heardAt >= Self.patience
            if isQuiet || isRead { closeWhenSettled() }
            var next = isReading && !isQuiet ? min(deadline, heardAt + Self.patience) : deadline
            if let recountAt {
                if recountAt <= now { reader.count() }
                self.recountAt = recountAt <= now ? nil : recountAt
                next = min(next, self.recountAt ?? next)
            }
            for event in mailbox.take(timeoutMilliseconds: max(1, next - now)) {
                switch event {
                case .reader(.delivery), .reader(.channelOpened): heardAt = MonotonicClock.milliseconds()
                default: break
                }
                let before = restarts
                if let failure = take(event, judge) { return given(up: failure) }
                if restarts > before { restarted() }
            }
            reader.flush()
            publisher?.publish()
        }
        return pass
    }

    /// While letters keep dying the count alone does not tell that those of the look before are back.
    private var isRead: Bool {
        guard let count, looked >= min(count, limit) else { return false }
        return !isLookingAgain || (postponed.isEmpty && keptBefore.isEmpty && heldBefore == nil)
    }
    private var isReading: Bool { count != nil && !isRead && !isClosing }

    /// Acknowledged letters make room for others; the rest is held until the end.
    private var limit: Int { DeadLetterBox.maximumHeld + reader.settledCount }

    private var timeUp: OvertimeError {
        let isConnected = count != nil && publisher?.isReady != false
        return isConnected || isLookingAgain ? .noReply : .unreachable(lastError.map { "\($0)" } ?? "")
    }

    private func given(up failure: OvertimeError) -> DeadLetterBox.Pass {
        for retry in publisher?.open ?? [] {
            // What was never published is as it was.
            pass.outcomes[retry.id] = publisher?.hasPublished == true ? .unknown : nil
        }
        pass.failure = failure
        return pass
    }

    /// What was not acknowledged goes back now, and whatever of the rest was not heard.
    private func closeWhenSettled() {
        guard !isClosing, publisher?.isIdle != false else { return }
        isClosing = true
        let end = reader.endLook(looked: looked, mayHold: lastSettled != nil)
        isCertain = isCertain && heldBefore == nil
        heldBefore = end.holds ? lastSettled : nil
        awaited = (end.awaited, MonotonicClock.milliseconds() + Self.patience)
    }

    private func take(_ event: Event, _ judge: Judge) -> OvertimeError? {
        switch event {
        case .reader(let event): return read(event, judge)
        case .publisher(let event):
            if case .disconnected(let error, _) = event { lastError = error }
            switch publisher?.take(event) {
            case .success(let all):
                for one in all {
                    pass.outcomes[one.retry.id] = one.outcome
                    if one.outcome == .retried {
                        settle(one.retry.key, isCounted: one.retry.isCounted, one.retry.tag)
                    } else {
                        kept.add(one.retry.key)
                    }
                }
            case .failure(let failure): return failure
            case nil: break
            }
            return nil
        }
    }

    private func read(_ event: LinkEvent, _ judge: Judge) -> OvertimeError? {
        switch event {
        case .queueCounted(DeadLetterReader.Channel.counting, let messages, _):
            counted(Int(messages))
        case .queueCounted(_, let messages, let consumers):
            count = Int(messages)
            if !isLookingAgain {
                pass.expected = Int(messages)
                pass.otherReaders = Int(consumers)
            }
        case .delivery(_, let delivery):
            take(delivery, judge)
        case .channelClosed(_, _, let error?, _):
            if error.kind == .notFound { return .noWorker("there is no queue \(queue)") }
            return lost(error)
        case .channelClosed(DeadLetterReader.Channel.letters, _, nil, _):
            if isClosing { reader.count() }
        case .channelClosed(_, _, nil, _):
            // Counted too early.
            if awaited != nil { recountAt = MonotonicClock.milliseconds() + Self.recountInterval }
        case .disconnected(let error, _):
            return lost(error)
        default: break
        }
        return nil
    }

    private func counted(_ messages: Int) {
        guard let awaited, isClosing else { return }
        if messages >= awaited.letters || MonotonicClock.milliseconds() >= awaited.until {
            self.awaited = nil
            endLook()
        } else {
            reader.stopCounting()
        }
    }

    private func endLook() {
        looks += 1
        let looksForPostponed = !postponed.isEmpty && looks < Self.maximumLooksForPostponed
        guard !settled.isEmpty || looksForPostponed else {
            pass.seen -= postponed.count
            pass.isSettled = isCertain
            isDone = true
            return
        }
        settledBefore = settled
        keptBefore = kept
        settled = LetterBag()
        kept = LetterBag()
        lastSettled = nil
        isLookingAgain = true
        beginLook()
    }

    private func beginLook() {
        count = nil
        looked = 0
        isClosing = false
        awaited = nil
        recountAt = nil
        reader.beginLook()
    }

    /// A pass that has changed nothing begins anew; one that has could do something twice.
    private func lost(_ error: AMQPError) -> OvertimeError? {
        lastError = error
        if error.isConfiguration { return .brokerRefuses("\(error)") }
        if hasActed || publisher?.hasPublished == true { return .unreachable("\(error)") }
        restarts += 1
        pass = DeadLetterBox.Pass()
        numbering = LetterNumbering()
        kept = LetterBag()
        keptBefore = LetterBag()
        postponed = PostponedLetters()
        looks = 0
        isLookingAgain = false
        publisher?.reset()
        beginLook()
        return nil
    }

    private func take(_ delivery: Delivery, _ judge: Judge) {
        let letter = Letter(delivery)
        let key = LetterBag.Key(letter, wasReturned: delivery.redelivered)
        guard !isClosing, isLookingAgain || !isRead else {
            // It came during the look, and goes back with the rest.
            kept.add(key)
            return
        }
        looked += 1
        if isLookingAgain {
            known(letter, key, delivery)
        } else {
            judged(letter, key, delivery, judge)
        }
    }

    private func judged(_ letter: Letter, _ key: LetterBag.Key, _ delivery: Delivery, _ judge: Judge) {
        let id = numbering.id(of: letter)
        pass.seen += 1
        let verdict = judge(id, letter)
        if case .keep = verdict {
            kept.add(key)
        } else if key.deliveries > 0 {
            act(verdict, id, letter, key, delivery.tag)
        } else {
            postponed.add(PostponedLetters.Entry(id: id, verdict: verdict), key)
        }
    }

    /// A letter of a further look. What is not surely of the look before is not touched.
    private func known(_ letter: Letter, _ key: LetterBag.Key, _ delivery: Delivery) {
        if keptBefore.remove(key) {
            kept.add(key)
        } else if settledBefore.remove(key) {
            if heldBefore == key { heldBefore = nil }
            settle(key, isCounted: true, delivery.tag)
        } else if key.deliveries > 0, let entry = postponed.remove(key) {
            act(entry.verdict, entry.id, letter, key, delivery.tag)
        } else {
            kept.add(key)
        }
    }

    private func act(
        _ verdict: DeadLetterBox.Verdict, _ id: LetterID, _ letter: Letter, _ key: LetterBag.Key,
        _ tag: DeliveryTag
    ) {
        let isCounted = LetterBag.Key.counted(letter) > 0
        switch verdict {
        case .keep: kept.add(key)
        case .drop:
            settle(key, isCounted: isCounted, tag)
            pass.outcomes[id] = .dropped
        case .retry(let command):
            guard case .bytes(let body) = letter.body else {
                pass.outcomes[id] = .tooLarge
                kept.add(key)
                return
            }
            publisher?.add(
                RetryPublisher.Retry(id: id, key: key, isCounted: isCounted, tag: tag), command, body: body)
        }
    }

    /// - Parameter isCounted: whether the broker counts its deliveries. Otherwise nothing would tell it from an equal
    ///   one, and if its acknowledgement is lost it stays.
    private func settle(_ key: LetterBag.Key, isCounted: Bool, _ tag: DeliveryTag) {
        hasActed = true
        if isCounted { settled.add(key) }
        lastSettled = isCounted ? key.afterReturn : nil
        reader.acknowledge(tag)
    }
}
