import RoomCore

/// Counts what the random sequences reached, so that a generator that stays shallow fails.
struct Coverage: CustomStringConvertible {
    enum Seen: Int, CaseIterable {
        case roomOpened, sessionStarted, joined, left, roleChanged, windowOpened, extended, acknowledged,
            ended
        case unknownRoom, invalidPolicy, sessionOver, noSession, notConnected, unauthorized
        case limitReached, alreadyExtended, windowNotOpen
        case done, joinedOutcome, extendedOutcome, idleTick, busyTick
        case lateWindow, skippedWindow, openFromStart, lastMillisecond, exactlyAtOpening, finalWindow
        case eighthWindow, notExtendable, secondExtension, thirdExtension, operatorExtended, operatorDestroyed
        case lateEnd, punctualEnd, waitingDestroyed, waitingStartedByJoin, waitingStartedByRole
        case startedByOpen, thirdSession, endAndStartAtOnce, clockBehind, openedDuringSession
        case waitingExtendRefused

        /// How often 100,000 sequences must at least reach it.
        var required: Int {
            switch self {
            case .waitingDestroyed, .waitingStartedByRole, .endAndStartAtOnce, .eighthWindow, .thirdExtension:
                300
            default: 1_000
            }
        }
    }

    private var counts = [Int](repeating: 0, count: Seen.allCases.count)

    subscript(seen: Seen) -> Int { counts[seen.rawValue] }

    mutating func add(_ other: Coverage) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }

    var description: String {
        Seen.allCases.map { "\($0) \(self[$0])" }.joined(separator: ", ")
    }

    private mutating func count(_ seen: Seen) { counts[seen.rawValue] += 1 }

    mutating func note(_ step: Step, clock: Instant) {
        note(step.outcome, step: step)
        if step.judgedAt > clock { count(.clockBehind) }
        var ended = false
        var started = false
        var last: Event.Kind?
        for event in step.transition.events {
            note(event, step: step)
            switch event.kind {
            case .sessionEnded: ended = true
            case .sessionStarted:
                started = true
                if ended { count(.endAndStartAtOnce) }
                if event.session ?? 0 >= 3 { count(.thirdSession) }
                if case .roomOpened = last { count(.startedByOpen) }
            case .participantJoined:
                if started, isWaiting(step.before) { count(.waitingStartedByJoin) }
            case .participantRoleChanged: if started { count(.waitingStartedByRole) }
            default: break
            }
            last = event.kind
        }
    }

    private func isWaiting(_ room: Room) -> Bool {
        if case .waiting = room.session?.phase { true } else { false }
    }

    private mutating func note(_ outcome: Outcome?, step: Step) {
        switch outcome {
        case nil: count(step.kinds.isEmpty ? .idleTick : .busyTick)
        case .done: count(.done)
        case .joined: count(.joinedOutcome)
        case .extended(_, _, let extensions):
            count(.extendedOutcome)
            if extensions == 2 { count(.secondExtension) }
            if extensions == 3 { count(.thirdExtension) }
        case .refused(let refusal):
            switch refusal.reason {
            case .invalidCommand, .idReused: break  // The decoder's and the store's.
            case .unknownRoom: count(.unknownRoom)
            case .invalidPolicy: count(.invalidPolicy)
            case .sessionOver: count(.sessionOver)
            case .noSession: count(.noSession)
            case .notConnected: count(.notConnected)
            case .unauthorized: count(.unauthorized)
            case .limitReached: count(.limitReached)
            case .alreadyExtended: count(.alreadyExtended)
            case .windowNotOpen:
                count(.windowNotOpen)
                if refusal.opensAt == nil { count(.waitingExtendRefused) }
            }
        }
    }

    private mutating func note(_ event: Event, step: Step) {
        switch event.kind {
        case .roomOpened:
            count(.roomOpened)
            if step.transition.room.session?.isLive == true, step.before.session?.isLive == true,
                step.before.sessionNumber == step.transition.room.sessionNumber
            {
                count(.openedDuringSession)
            }
        case .sessionStarted: count(.sessionStarted)
        case .participantJoined: count(.joined)
        case .participantLeft: count(.left)
        case .participantRoleChanged: count(.roleChanged)
        case .windowOpened(let notice): note(notice, step: step)
        case .sessionExtended(let notice):
            count(.extended)
            if case .operator = notice.by { count(.operatorExtended) }
            if step.judgedAt == notice.previousEndsAt - TimeSpan(milliseconds: 1) { count(.lastMillisecond) }
        case .destroyAcknowledged: count(.acknowledged)
        case .sessionEnded(let notice):
            count(.ended)
            if notice.cause == .elapsed { count(notice.lateBy > .zero ? .lateEnd : .punctualEnd) }
            if notice.cause == .destroyed, notice.by == nil { count(.operatorDestroyed) }
            if notice.startedAt == nil { count(.waitingDestroyed) }
        }
    }

    private mutating func note(_ notice: WindowNotice, step: Step) {
        count(.windowOpened)
        if notice.lateBy > .zero { count(.lateWindow) } else { count(.exactlyAtOpening) }
        if notice.isFinal { count(.finalWindow) }
        if notice.window == 8 { count(.eighthWindow) }
        if !notice.isExtendable { count(.notExtendable) }
        if step.kinds.contains(where: { if case .sessionStarted = $0 { true } else { false } }) {
            count(.openFromStart)
        } else if let due = step.before.dueAt, due < notice.dueAt {
            count(.skippedWindow)
        }
    }
}
