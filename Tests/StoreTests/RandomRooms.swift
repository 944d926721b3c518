import RoomCore

/// A generator with a seed, so that a failing test can be run again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func one<Value>(of choices: [Value]) -> Value { choices[Int(next() % UInt64(choices.count))] }

    /// Any valid UTF-8, also what escapes, normalises or sorts oddly.
    mutating func text() -> String {
        let pieces = [
            "a", "Z", "7", ":", "'", "\"", "\\", "/", "%", "é", "e\u{301}", "ß", "日本", "😀", "\u{FEFF}",
            "\u{0}",
            "\u{1F}", "\u{7F}", "\u{2028}", "\u{D7FF}", "\u{E000}", "\u{10FFFF}", " ",
        ]
        return (0...Int.random(in: 0...12, using: &self)).map { _ in one(of: pieces) }.joined()
    }

    mutating func instant() -> Instant {
        one(of: [
            .earliest, .latest, .noon, Instant(milliseconds: 0),
            Instant(milliseconds: .random(in: -4_000_000_000_000...4_000_000_000_000, using: &self)),
        ])
    }

    mutating func maybe<Value>(_ value: Value) -> Value? { Bool.random(using: &self) ? value : nil }

    mutating func definition() -> Definition {
        let lengths = Set(
            (0..<Int.random(in: 1...8, using: &self)).map { _ in Int64.random(in: 1...9_000, using: &self) })
        let windows = lengths.sorted(by: >).map { TimeSpan(milliseconds: $0) }
        let min = Int64.random(in: 10_000...20_000, using: &self)
        let moderators = (0..<Int.random(in: 0...4, using: &self)).map { _ in UserID(text()) }
        return Definition(
            duration: TimeSpan(milliseconds: .random(in: 1...TimeSpan.longest.milliseconds, using: &self)),
            moderators: maybe(moderators),
            policy: Policy(
                windows: windows,
                extension: ExtensionBounds(
                    min: TimeSpan(milliseconds: min), max: TimeSpan(milliseconds: min + 500),
                    default: TimeSpan(milliseconds: min + 7)),
                extenders: one(of: Extenders.allCases),
                maxExtensions: maybe(.random(in: 0 ... .max, using: &self)),
                maxTotal: maybe(.longest), clock: one(of: SessionClock.allCases),
                reopen: one(of: Reopening.allCases)))
    }

    mutating func phase(_ definition: Definition) -> Session.Phase {
        let times = [instant(), instant()].sorted()
        switch Int.random(in: 0...2, using: &self) {
        case 0:
            return .waiting
        case 1:
            return .running(
                Run(
                    startedAt: times[0], endsAt: times[1], extensions: .random(in: 0 ... .max, using: &self),
                    announced: .random(in: 0...definition.policy.windows.count, using: &self),
                    extendedBy: one(of: [nil, .user(UserID(text())), .operator(text())])))
        default:
            return .ended(
                Ending(
                    startedAt: maybe(times[0]), endsAt: maybe(times[1]), endedAt: instant(),
                    cause: one(of: [.elapsed, .destroyed]), extensions: .random(in: 0...9, using: &self)))
        }
    }

    mutating func room(_ id: RoomID) -> Room {
        var room = Room(
            id: id, definition: maybe(definition()), sequence: .random(in: 0 ... .max, using: &self),
            sessionNumber: .random(in: 0...99, using: &self), isOpen: .random(using: &self))
        guard Bool.random(using: &self) else { return room }
        let definition = maybe(room.definition ?? self.definition()) ?? self.definition()
        let phase = phase(definition)
        var session = Session(
            number: room.sessionNumber, definition: definition, phase: phase, connected: 0,
            changedAt: instant())
        if session.isLive { session.connected = .random(in: 0...5_000, using: &self) }
        room.session = session
        return room
    }
}
