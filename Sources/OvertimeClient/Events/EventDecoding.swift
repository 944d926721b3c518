import Contract
import FoundationEssentials
import RoomCore

extension Overtime.Event {
    /// Nil for anything that is no event of Overtime. One of a known type whose data cannot be read is `other`.
    package init?(body: [UInt8], position: Int64?) {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes),
            let id = whole["id"]?.string, let type = whole["type"]?.string, let time = whole["time"]?.date,
            let sequence = whole["sequence"]?.string.flatMap(Int64.init), let data = whole["data"],
            let room = data["room"]?.string
        else { return nil }
        self.init(
            id: id, room: room, sequence: sequence, session: data["session"]?.int, time: time,
            audience: Overtime.Audience(data["audience"]?.string),
            content: Overtime.Content(type, data) ?? .other, type: type, position: position,
            json: String(decoding: body, as: UTF8.self))
    }
}

extension Overtime.Audience {
    fileprivate init(_ text: String?) {
        switch text {
        case "room": self = .room
        case let text? where text.hasPrefix("user:"): self = .user(String(text.dropFirst(5)))
        default: self = .other
        }
    }
}

extension Overtime.Content {
    fileprivate init?(_ type: String, _ data: JSONValue) {
        switch EventType(rawValue: type) {
        case .roomOpened:
            guard let opened = Overtime.RoomOpened(data) else { return nil }
            self = .roomOpened(opened)
        case .sessionStarted:
            guard let started = Overtime.SessionStarted(data) else { return nil }
            self = .sessionStarted(started)
        case .participantJoined:
            guard let presence = Overtime.Presence(data) else { return nil }
            self = .participantJoined(presence)
        case .participantLeft:
            guard let presence = Overtime.Presence(data) else { return nil }
            self = .participantLeft(presence)
        case .participantRoleChanged:
            guard let presence = Overtime.Presence(data) else { return nil }
            self = .participantRoleChanged(presence)
        case .windowOpened:
            guard let opened = Overtime.WindowOpened(data) else { return nil }
            self = .windowOpened(opened)
        case .sessionExtended:
            guard let extended = Overtime.SessionExtended(data) else { return nil }
            self = .sessionExtended(extended)
        case .destroyAcknowledged:
            guard let moderator = data["by"]?.string else { return nil }
            self = .destroyAcknowledged(by: moderator)
        case .sessionEnded:
            guard let ended = Overtime.SessionEnded(data) else { return nil }
            self = .sessionEnded(ended)
        case nil: return nil
        }
    }
}

extension Overtime.RoomOpened {
    fileprivate init?(_ data: JSONValue) {
        guard let duration = data["duration"]?.minutes,
            let policy = data["policy"].flatMap(Overtime.Policy.init)
        else { return nil }
        self.init(
            duration: duration, policy: policy, moderators: data["moderators"]?.array?.compactMap(\.string))
    }
}

extension Overtime.SessionStarted {
    fileprivate init?(_ data: JSONValue) {
        guard let startedAt = data["startedAt"]?.date, let endsAt = data["endsAt"]?.date,
            let duration = data["duration"]?.minutes, let nextDueAt = data["nextDueAt"]?.date
        else { return nil }
        self.init(startedAt: startedAt, endsAt: endsAt, duration: duration, nextDueAt: nextDueAt)
    }
}

extension Overtime.Presence {
    fileprivate init?(_ data: JSONValue) {
        guard let user = data["user"]?.string,
            let role = data["role"]?.string.flatMap(Overtime.Role.init(rawValue:)),
            let connected = data["connected"]?.int
        else { return nil }
        self.init(user: user, role: role, connected: connected)
    }
}

extension Overtime.WindowOpened {
    fileprivate init?(_ data: JSONValue) {
        guard let timeLeft = data["timeLeft"]?.minutes, let window = data["window"]?.int,
            let isFinal = data["final"]?.bool, let isExtendable = data["extendable"]?.bool,
            let extensions = data["extensions"]?.int, let endsAt = data["endsAt"]?.date,
            let nextDueAt = data["nextDueAt"]?.date, let dueAt = data["dueAt"]?.date,
            let lateBy = data["lateBy"]?.seconds
        else { return nil }
        self.init(
            timeLeft: timeLeft, window: window, isFinal: isFinal, isExtendable: isExtendable,
            extensions: extensions, endsAt: endsAt, nextDueAt: nextDueAt, dueAt: dueAt, lateBy: lateBy)
    }
}

extension Overtime.SessionExtended {
    fileprivate init?(_ data: JSONValue) {
        let user = data["by"]?.string.map(Overtime.Extender.user)
        guard let time = data["extendedTime"]?.minutes,
            let by = user ?? data["operator"]?.string.map(Overtime.Extender.operator),
            let previousEndsAt = data["previousEndsAt"]?.date, let endsAt = data["endsAt"]?.date,
            let nextDueAt = data["nextDueAt"]?.date, let extensions = data["extensions"]?.int
        else { return nil }
        self.init(
            extendedTime: time, by: by, previousEndsAt: previousEndsAt, endsAt: endsAt, nextDueAt: nextDueAt,
            extensions: extensions)
    }
}

extension Overtime.SessionEnded {
    fileprivate init?(_ data: JSONValue) {
        guard let cause = data["cause"]?.string.flatMap(Overtime.EndCause.init(rawValue:)),
            let endedAt = data["endedAt"]?.date,
            let lateBy = data["lateBy"]?.seconds, let extensions = data["extensions"]?.int,
            let participants = data["participants"]?.int
        else { return nil }
        self.init(
            cause: cause, by: data["by"]?.string, startedAt: data["startedAt"]?.date,
            endsAt: data["endsAt"]?.date, endedAt: endedAt, lateBy: lateBy, extensions: extensions,
            participants: participants)
    }
}
