import Contract
import FoundationEssentials
import OvertimeClient
import RoomCore

/// An event as a line for people.
enum EventText {
    static func line(_ event: Overtime.Event) -> String {
        let time = Output.colour(HumanTime.clock(Instant(event.time), withMilliseconds: true), .dim)
        let room = Output.colour(pad(event.room, 12), .bold)
        let number = Output.colour(pad("#\(event.sequence)", 5), .dim)
        return
            "\(time)  \(room) \(number) \(Output.colour(pad(event.type, 28), colour(event.type)))  \(details(event))"
    }

    private static func details(_ event: Overtime.Event) -> String {
        switch event.content {
        case .roomOpened(let opened): return "for \(span(opened.duration))"
        case .sessionStarted(let started):
            return "session \(event.session.map(String.init) ?? "?"), ends \(clock(started.endsAt))"
        case .participantJoined(let one):
            return "\(one.user) as \(one.role.rawValue), \(one.connected) connected"
        case .participantLeft(let one): return "\(one.user), \(one.connected) connected"
        case .participantRoleChanged(let one): return "\(one.user) is now \(one.role.rawValue)"
        case .windowOpened(let opened):
            return (opened.isFinal ? "final window, " : "window \(opened.window), ")
                + "\(span(opened.timeLeft)) left" + (opened.isExtendable ? "" : ", not extendable")
        case .sessionExtended(let extended):
            return "+\(span(extended.extendedTime)) by \(name(extended.by)), ends \(clock(extended.endsAt))"
        case .destroyAcknowledged(let moderator): return "to \(moderator)"
        case .sessionEnded(let ended):
            let by = ended.by.map { " by \($0)" } ?? ""
            return "\(ended.cause.rawValue)\(by), \(ended.participants) disconnected"
        case .other: return ""
        }
    }

    private static func clock(_ date: Date) -> String { HumanTime.clock(Instant(date)) }
    private static func span(_ duration: Duration) -> String { HumanTime.span(TimeSpan(duration)) }

    private static func name(_ extender: Overtime.Extender) -> String {
        switch extender {
        case .user(let name), .operator(let name): name
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
