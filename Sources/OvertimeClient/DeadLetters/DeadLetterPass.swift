internal import AMQP
internal import Contract
import Service

/// One pass over the dead letters; see `DeadLetterBox`.
///
/// The first look at the queue asks what to do with each letter. Further ones follow for as long as acknowledged
/// letters are found in it again; see `SettledLetters`.
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
    private var settled = SettledLetters()
    private var settledBefore = SettledLetters()
    private var hasActed = false

    /// How long the broker may take for the next letter; longer, and somebody else has it.
    private static let patience: Int64 = 3_000
    private static let recountInterval: Int64 = 10

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
        while !pass.isSettled {
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

    private var isRead: Bool { count.map { looked >= min($0, limit) } ?? false }
    private var isReading: Bool { count != nil && !isRead && !isClosing }

    /// Acknowledged letters make room for others; the rest is held until the end.
    private var limit: Int { DeadLetterBox.maximumHeld + reader.settledCount }

    private var timeUp: RequestFailure {
        let isConnected = count != nil && publisher?.isReady != false
        return isConnected || isLookingAgain ? .noReply : .unreachable(lastError)
    }

    private func given(up failure: RequestFailure) -> DeadLetterBox.Pass {
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
        awaited = (reader.endLook(looked: looked), MonotonicClock.milliseconds() + Self.patience)
    }

    private func take(_ event: Event, _ judge: Judge) -> RequestFailure? {
        switch event {
        case .reader(let event): return read(event, judge)
        case .publisher(let event):
            if case .disconnected(let error, _) = event { lastError = error }
            switch publisher?.take(event) {
            case .success(let all):
                for one in all {
                    pass.outcomes[one.retry.id] = one.outcome
                    if one.outcome == .retried { settle(one.retry.letter, one.retry.tag) }
                }
            case .failure(let failure): return failure
            case nil: break
            }
            return nil
        }
    }

    private func read(_ event: LinkEvent, _ judge: Judge) -> RequestFailure? {
        switch event {
        case .queueCounted(DeadLetterReader.Channel.counting, let messages):
            counted(Int(messages))
        case .queueCounted(_, let messages):
            count = Int(messages)
            if !isLookingAgain { pass.expected = Int(messages) }
        case .delivery(_, let delivery):
            if !isRead, !isClosing { judged(delivery, judge) }
        case .channelClosed(_, _, let error?, _):
            if error.kind == .notFound { return .missing(queue: queue.description) }
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
        guard !settled.isEmpty else {
            pass.isSettled = true
            return
        }
        settledBefore = settled
        settled = SettledLetters()
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
    private func lost(_ error: AMQPError) -> RequestFailure? {
        lastError = error
        if error.isConfiguration { return .broker(error) }
        if hasActed || publisher?.hasPublished == true { return .unreachable(error) }
        restarts += 1
        pass = DeadLetterBox.Pass()
        numbering = LetterNumbering()
        publisher?.reset()
        beginLook()
        return nil
    }

    private func judged(_ delivery: Delivery, _ judge: Judge) {
        let letter = Letter(delivery)
        looked += 1
        if isLookingAgain {
            if settledBefore.remove(letter) { settle(letter, delivery.tag) }
            return
        }
        let id = numbering.id(of: letter)
        pass.seen += 1
        switch judge(id, letter) {
        case .keep: break
        case .drop:
            settle(letter, delivery.tag)
            pass.outcomes[id] = .dropped
        case .retry(let command):
            guard case .bytes(let body) = letter.body else {
                pass.outcomes[id] = .tooLarge
                return
            }
            publisher?.add(
                RetryPublisher.Retry(id: id, letter: letter, tag: delivery.tag), command, body: body)
        }
    }

    private func settle(_ letter: Letter, _ tag: DeliveryTag) {
        hasActed = true
        settled.add(letter)
        reader.acknowledge(tag)
    }
}
