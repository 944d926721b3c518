import Contract
import OvertimeClient
import RoomCore

/// An event as a line for people.
enum EventText {
    static func line(_ event: WatchedEvent) -> String {
        let time = Output.colour(HumanTime.clock(event.time, withMilliseconds: true), .dim)
        let room = Output.colour(pad(event.room.text, 12), .bold)
        let number = Output.colour(pad("#\(event.sequence)", 5), .dim)
        return
            "\(time)  \(room) \(number) \(Output.colour(pad(event.type, 28), colour(event.type)))  \(details(event))"
    }

    private static func details(_ event: WatchedEvent) -> String {
        let data = event.data
        func clock(_ field: String) -> String { data[field]?.instant.map { HumanTime.clock($0) } ?? "?" }
        func text(_ field: String) -> String { data[field]?.string ?? "?" }
        func count(_ field: String) -> String { data[field]?.integer.map(String.init) ?? "?" }
        switch EventType(rawValue: event.type) {
        case .roomOpened: return "for \(HumanTime.minutes(data["duration"]))"
        case .sessionStarted: return "session \(count("session")), ends \(clock("endsAt"))"
        case .participantJoined: return "\(text("user")) as \(text("role")), \(count("connected")) connected"
        case .participantLeft: return "\(text("user")), \(count("connected")) connected"
        case .participantRoleChanged: return "\(text("user")) is now \(text("role"))"
        case .windowOpened:
            let isFinal = data["final"]?.bool == true
            let isExtendable = data["extendable"]?.bool == true
            return (isFinal ? "final window, " : "window \(count("window")), ")
                + HumanTime.minutes(data["timeLeft"])
                + " left" + (isExtendable ? "" : ", not extendable")
        case .sessionExtended:
            return "+\(HumanTime.minutes(data["extendedTime"])) by "
                + "\(data["by"]?.string ?? data["operator"]?.string ?? "?"), ends \(clock("endsAt"))"
        case .destroyAcknowledged: return "to \(text("by"))"
        case .sessionEnded:
            let by = data["by"]?.string.map { " by \($0)" } ?? ""
            return "\(text("cause"))\(by), \(count("participants")) disconnected"
        case nil: return ""
        }
    }

    private static func colour(_ type: String) -> Output.Colour {
        switch EventType(rawValue: type) {
        case .windowOpened: .yellow
        case .sessionEnded, .destroyAcknowledged: .red
        case .sessionStarted, .sessionExtended: .green
        default: .cyan
        }
    }

    static func pad(_ text: String, _ width: Int) -> String {
        text.count >= width ? text : text + String(repeating: " ", count: width - text.count)
    }
}
