import Contract
import RoomCore
import Store

/// I5, from the events alone: a window is announced once an end, never early and truly; a session ends once; nothing
/// of it comes after its end.
struct SessionCheck {
    private struct Session {
        let number: Int64
        var startedAt: Int64?
        var endsAt: Int64 = 0
        var extensions: Int64 = 0
        var windows: [Int64]
        var announced: Int64 = 0
        var isEnded = false
        var time: Int64
        var connected: Set<String> = []
    }

    private let history: History
    private var rooms: [RoomID: Session] = [:]
    private var windows: [RoomID: [Int64]] = [:]
    private var latestWall: Int64 = .min

    init(history: History) { self.history = history }

    func violations() -> [String] {
        var check = self
        var found: [String] = []
        for commit in history.commits {
            check.latestWall = max(check.latestWall, commit.wall)
            for draft in commit.batch.outbox {
                guard let fact = EventFact(draft.body) else {
                    found.append("I3: \(draft.messageID) cannot be read")
                    continue
                }
                if let problem = check.take(fact, in: draft.room) {
                    found.append("I5: \(draft.messageID) \(fact.type): \(problem)")
                }
            }
        }
        return found
    }

    private mutating func take(_ fact: EventFact, in room: RoomID) -> String? {
        guard fact.time <= latestWall else { return "its time has not come" }
        if fact.type == "room.opened" {
            guard let values = fact.data["policy"]?["windows"]?.array else { return "no windows" }
            windows[room] = values.compactMap { EventFact.milliseconds($0, unit: 60_000) }
            return nil
        }
        guard let number = fact.session else { return "no session" }
        var session =
            rooms[room] ?? Session(number: 0, windows: [], isEnded: true, time: .min)
        if number == session.number + 1, session.isEnded {
            session = Session(number: number, windows: windows[room] ?? [], time: fact.time)
        }
        guard number == session.number else { return "of session \(number) in session \(session.number)" }
        guard !session.isEnded else { return "after the end" }
        guard fact.time >= session.time else { return "time runs back" }
        session.time = fact.time
        let problem = Self.apply(fact, to: &session)
        rooms[room] = session
        return problem
    }

    private static func apply(_ fact: EventFact, to session: inout Session) -> String? {
        let user = fact.data["user"]?.string ?? ""
        switch fact.type {
        case "session.started":
            guard session.startedAt == nil else { return "a second start" }
            guard let endsAt = fact.instant("endsAt"), let duration = fact.span("duration") else {
                return "no end"
            }
            guard abs(endsAt - fact.time - duration) <= 6 else { return "a wrong end" }
            session.startedAt = fact.time
            session.endsAt = endsAt
        case "participant.joined":
            guard session.connected.insert(user).inserted else { return "\(user) is there already" }
        case "participant.left":
            guard session.connected.remove(user) != nil else { return "\(user) is not there" }
        case "participant.role.changed":
            guard session.connected.contains(user) else { return "\(user) is not there" }
        case "session.window.opened": return notice(fact, &session)
        case "session.extended": return extend(fact, &session)
        case "session.ended": return end(fact, &session)
        case "session.destroy.acknowledged": break
        default: return "an unknown type"
        }
        guard fact.integer("connected").map({ $0 == session.connected.count }) ?? true else {
            return "a wrong number of connected"
        }
        return nil
    }

    private static func notice(_ fact: EventFact, _ session: inout Session) -> String? {
        guard let startedAt = session.startedAt else { return "before the start" }
        guard let window = fact.integer("window"), session.windows.indices.contains(Int(window) - 1) else {
            return "an unknown window"
        }
        guard window > session.announced else { return "announced again" }
        session.announced = window
        let opening = max(session.endsAt - session.windows[Int(window) - 1], startedAt)
        guard fact.time >= opening else { return "\(opening - fact.time) ms early" }
        guard fact.time < session.endsAt else { return "at the end or after" }
        if Int(window) < session.windows.count, fact.time >= session.endsAt - session.windows[Int(window)] {
            return "a later window is open"
        }
        guard fact.instant("endsAt") == session.endsAt, fact.integer("extensions") == session.extensions
        else {
            return "of another end"
        }
        guard let left = fact.span("timeLeft"), abs(left - (session.endsAt - fact.time)) <= 6 else {
            return "a wrong time left"
        }
        return nil
    }

    private static func extend(_ fact: EventFact, _ session: inout Session) -> String? {
        guard fact.instant("previousEndsAt") == session.endsAt, let endsAt = fact.instant("endsAt") else {
            return "of another end"
        }
        guard let longest = session.windows.first, fact.time >= session.endsAt - longest,
            fact.time < session.endsAt
        else { return "outside of the windows" }
        guard let grant = fact.span("extendedTime"), abs(endsAt - session.endsAt - grant) <= 6, grant > 0
        else {
            return "a wrong grant"
        }
        session.extensions += 1
        guard fact.integer("extensions") == session.extensions else { return "a wrong count" }
        session.endsAt = endsAt
        session.announced = 0
        return nil
    }

    private static func end(_ fact: EventFact, _ session: inout Session) -> String? {
        session.isEnded = true
        guard fact.integer("participants") == Int64(session.connected.count) else {
            return "a wrong number of participants"
        }
        guard fact.data["cause"]?.string == "elapsed" else { return nil }
        guard session.startedAt != nil, fact.time >= session.endsAt else { return "too early" }
        return nil
    }
}
