import AMQP
import Contract
import RoomCore
import Service

/// The snapshot: what lives, page by page, from whichever worker answers.
extension Scheduler {
    static let pageSize = 500
    private static let smallestPage = 100
    /// Bounds how long a session stays unknown whose events did not come, and how long a step of the worker's clock does.
    private static let snapshotInterval: Int64 = 30_000
    /// How soon, and for how long, is looked again after an answer that contradicts the one before.
    private static let doubtInterval: Int64 = 1_000
    private static let doubtLength: Int64 = 10_000
    private static let answerTimeout: Int64 = 5_000

    func wantSnapshot(at uptime: Int64) {
        isSnapshotWanted = true
        snapshot = .idle(nextAt: uptime)
    }

    func continueSnapshot(at uptime: Int64) {
        guard isConnected, let queue = answersQueue() else { return }
        if isSnapshotWanted {
            isSnapshotWanted = false
            isSnapshotUrgent = true
            isSnapshotComplete = false
            agenda.beginSnapshot()
            pageSize = Self.pageSize
            snapshot = .ready(after: nil, at: uptime)
        }
        switch snapshot {
        case .idle(let nextAt):
            guard uptime >= nextAt else { return }
            agenda.beginSnapshot()
            ask(after: nil, newCorrelation(), queue: queue, at: uptime)
        case .ready(let after, let at):
            if uptime >= at { ask(after: after, newCorrelation(), queue: queue, at: uptime) }
        case .asked(let after, let correlation, let at):
            guard uptime - at >= Self.answerTimeout else { return }
            // The worker may be away; nobody else knows, so it is asked again. Under the same correlation: an answer
            // that takes longer than the patience here is an answer all the same. For less, since the broker may have a
            // limit that the answer did not pass.
            pageSize = max(pageSize / 2, Self.smallestPage)
            ask(after: after, correlation, queue: queue, at: uptime)
            guard !isUnanswered else { return }
            isUnanswered = true
            log.warning(
                "no worker answers: rooms that were not heard of yet are not fired; asked again each 5 s")
        }
    }

    func noteAnswer() {
        guard isUnanswered else { return }
        isUnanswered = false
        log.info("a worker answers again")
    }

    func ask(after: RoomID?, _ correlation: UInt64, queue: ShortString, at uptime: Int64) {
        guard let generation = publishing else { return }
        let publication = Publication(
            id: correlation, exchange: topology.queries, routingKey: .empty, mandatory: false,
            properties: question(correlation, replyTo: queue),
            body: QueryEncoder.encode(.rooms(after: after, limit: pageSize)))
        snapshot = .asked(after: after, correlation: correlation, at: uptime)
        outlet.publish([publication], generation)
    }

    func receivePage(_ body: [UInt8], sent: Int64?, received: Int64, at uptime: Int64) {
        guard case .success(let page) = QueryReplyDecoder.rooms(body) else { return }
        learn(page.serverTime, sent: sent, received: received, at: uptime)
        noteAnswer()
        for room in page.rows {
            agenda.learnSnapshot(room: room.room, sequence: room.sequence, dueAt: room.nextDueAt)
        }
        if let next = page.next {
            // One after a connection hurries; the others are only a safety net and leave the worker its time.
            snapshot = .ready(after: next, at: isSnapshotUrgent ? uptime : uptime + 100)
            return
        }
        agenda.endSnapshot()
        if isSnapshotUrgent { log.info("firing", ["rooms": agenda.count]) }
        isSnapshotUrgent = false
        isSnapshotComplete = true
        meters.snapshots += 1
        let interval = uptime < clockDoubtUntil ? Self.doubtInterval : Self.snapshotInterval
        snapshot = .idle(nextAt: uptime + interval)
    }

    /// A worker's clock that was wrong for a moment is found right again soon, and not by the next safety net.
    func doubtClocks(at uptime: Int64) {
        clockDoubtUntil = uptime + Self.doubtLength
        if case .idle(let nextAt) = snapshot {
            snapshot = .idle(nextAt: min(nextAt, uptime + Self.doubtInterval))
        }
    }

    func snapshotWait(at uptime: Int64) -> Int64 {
        switch snapshot {
        case .idle(let nextAt): max(nextAt - uptime, 0)
        case .ready(_, let at): max(at - uptime, 0)
        case .asked(_, _, let at): max(at + Self.answerTimeout - uptime, 0)
        }
    }
}
