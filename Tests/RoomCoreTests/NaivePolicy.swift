import RoomCore

/// A definition as the model keeps it: plain milliseconds and strings, resolved by its own reading of the
/// contract.
struct NaiveDefinition: Equatable {
    var duration: Int64
    var moderators: [String]?
    var windows: [Int64]
    var least: Int64
    var most: Int64
    var usual: Int64
    var extenders: String
    var maxExtensions: Int64?
    var maxTotal: Int64?
    var clock: String
    var reopen: String
}

extension NaiveDefinition {
    /// Nil where the contract says `invalid_policy`.
    static func resolve(_ request: OpenRequest, usualDuration: Int64) -> NaiveDefinition? {
        let asked = request.policy
        let minute: Int64 = 60_000
        let windows =
            asked?.windows.map { list in list.map { $0.milliseconds } } ?? [10 * minute, 5 * minute]
        if windows.isEmpty || windows.count > 8 { return nil }
        for (index, window) in windows.enumerated() {
            for other in windows[(index + 1)...] where other >= window { return nil }
        }
        let longest = windows[0]
        let least = asked?.extension?.min?.milliseconds ?? (longest > 10 * minute ? longest : 10 * minute)
        let most = asked?.extension?.max?.milliseconds ?? (least > 30 * minute ? least : 30 * minute)
        let usual = asked?.extension?.default?.milliseconds ?? least
        if least < longest { return nil }
        if least > most { return nil }
        if usual < least || usual > most { return nil }
        let duration = request.duration?.milliseconds ?? usualDuration
        if let total = asked?.maxTotal?.milliseconds, total < duration { return nil }
        return NaiveDefinition(
            duration: duration, moderators: request.moderators.map { list in list.map { $0.text } },
            windows: windows, least: least, most: most, usual: usual,
            extenders: asked?.extenders?.rawValue ?? "anyone", maxExtensions: asked?.maxExtensions,
            maxTotal: asked?.maxTotal?.milliseconds, clock: asked?.clock?.rawValue ?? "first-join",
            reopen: asked?.reopen?.rawValue ?? "command")
    }

    /// The same as the rules' value, to compare with; nil where a word is unknown to them.
    var asDefinition: Definition? {
        guard let extenders = Extenders(rawValue: extenders), let clock = SessionClock(rawValue: clock),
            let reopen = Reopening(rawValue: reopen)
        else { return nil }
        return Definition(
            duration: TimeSpan(milliseconds: duration),
            moderators: moderators.map { list in list.map { UserID($0) } },
            policy: Policy(
                windows: windows.map { TimeSpan(milliseconds: $0) },
                extension: ExtensionBounds(
                    min: TimeSpan(milliseconds: least), max: TimeSpan(milliseconds: most),
                    default: TimeSpan(milliseconds: usual)),
                extenders: extenders, maxExtensions: maxExtensions,
                maxTotal: maxTotal.map { TimeSpan(milliseconds: $0) }, clock: clock, reopen: reopen))
    }

    /// The role a user gets who asks for one.
    func role(of user: String, asking role: String) -> String {
        guard let moderators else { return role }
        if moderators.contains(user) { return "moderator" }
        return role == "moderator" ? "participant" : role
    }

    /// The windows before an end, as intervals: number, opening (inside), closing (outside).
    func intervals(before end: Int64) -> [(number: Int, from: Int64, to: Int64)] {
        var list: [(number: Int, from: Int64, to: Int64)] = []
        for number in 1...windows.count {
            let closing = number == windows.count ? end : end - windows[number]
            list.append((number, end - windows[number - 1], closing))
        }
        return list
    }
}
