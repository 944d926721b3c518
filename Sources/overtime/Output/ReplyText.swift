import Contract
import RoomCore

/// A reply as a line for people.
enum ReplyText {
    static func line(_ reply: Reply, _ command: Command) -> String {
        let head = "\(command.action.name.rawValue) \(command.room)"
        guard reply.ok else {
            let error = reply.error
            let opens =
                reply.whole["error"]?["opensAt"]?.instant.map { ", opens \(HumanTime.clock($0))" } ?? ""
            return Output.colour("refused", .red)
                + "  \(head): \(error.map { "\($0.code) \($0.reason): \($0.message)" } ?? "?")\(opens)"
        }
        return Output.colour("ok", .green) + "  \(head)\(details(reply))"
    }

    private static func details(_ reply: Reply) -> String {
        let result = reply.whole["result"]
        var parts: [String] = []
        if let role = result?["role"]?.string { parts.append("as \(role)") }
        if result?["extendedTime"] != nil { parts.append("+" + HumanTime.minutes(result?["extendedTime"])) }
        if let session = reply.whole["session"], !session.isNull { parts.append(text(session)) }
        return parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")
    }

    private static func text(_ session: JSONValue) -> String {
        let number = session["number"]?.integer.map(String.init) ?? "?"
        let connected = session["connected"]?.integer.map(String.init) ?? "?"
        switch session["state"]?.string.flatMap(Snapshot.State.init(rawValue:)) {
        case .running:
            let end = session["endsAt"]?.instant.map { HumanTime.clock($0) } ?? "?"
            let window = session["window"]?.integer.map { ", window \($0) is open" } ?? ""
            return
                "session \(number) ends \(end) (in \(HumanTime.minutes(session["timeLeft"]))), \(connected) connected\(window)"
        case .waiting: return "session \(number) waits for a moderator, \(connected) connected"
        case .ended: return "session \(number) has ended (\(session["cause"]?.string ?? "?"))"
        case nil: return "session \(number)"
        }
    }
}
