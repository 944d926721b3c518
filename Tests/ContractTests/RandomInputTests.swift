import AMQP
import Contract
import RoomCore
import Testing

/// Input that nobody thought of. The seed is fixed, so a failure comes again.
@Suite("Random input")
struct RandomInputTests {
    /// SplitMix64.
    struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    static let bodies =
        (WrongCommands.envelopes + WrongCommands.arguments).map(\.0)
        + CommandDecoderTests.good.map(\.0)

    @Test("mangled bodies are decoded or refused, never more, and every decoder survives them")
    func mangled() {
        var generator = Generator(state: 1)
        var decoded = 0
        for round in 0..<3_000 {
            let seed = Self.bodies[round % Self.bodies.count]
            let body = Self.mangle(Array(seed.utf8), &generator)
            switch CommandDecoder.decode(body: body, properties: Self.properties(&generator)) {
            case .success(let command):
                decoded += 1
                let again = CommandDecoder.decode(
                    body: CommandEncoder.encode(command), properties: Properties())
                if again != .success(command) { Issue.record("\(body.text) does not come back") }
            case .failure(let invalid):
                let isPrintable = !invalid.detail.unicodeScalars.contains(where: PrintableText.isControl)
                if !isPrintable || invalid.detail.utf8.count > 512 || invalid.detail.isEmpty {
                    Issue.record("\(invalid.detail)")
                }
            }
            _ = QueryDecoder.decode(body)
            _ = ReplyDecoder.decode(body)
            _ = QueryReplyDecoder.rooms(body)
            _ = QueryReplyDecoder.participants(body)
            _ = SessionFact.decode(body)
            _ = Tick.decode(body)
            _ = TickAnswer.decode(body)
            _ = WorkerState.decode(body)
        }
        #expect(decoded > 50)
    }

    @Test("random durations are refused or lie within the bounds")
    func durations() {
        var generator = Generator(state: 2)
        for _ in 0..<5_000 {
            let number = Double(bitPattern: generator.next())
            let alphabet = Array("0123456789hmsms. -e")
            let text = String(
                (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                    alphabet.randomElement(using: &generator) ?? "0"
                })
            let values: [JSONValue] = [
                .real(number), .integer(Int64(bitPattern: generator.next())), .string(text),
            ]
            for value in values {
                guard case .success(let span) = DurationText.span(value) else { continue }
                if span < TimeSpan(milliseconds: 1) || span > .longest { Issue.record("\(value)") }
            }
        }
    }

    @Test("random commands encode to what decodes as the same, and only equal ones have equal texts")
    func roundTrip() {
        var generator = Generator(state: 3)
        var texts: [[UInt8]: Command] = [:]
        for _ in 0..<1_500 {
            let command = Self.command(&generator)
            let decoded = CommandDecoder.decode(
                body: CommandEncoder.encode(command), properties: Properties())
            if decoded != .success(command) { Issue.record("\(command)") }
            let bare = Command(room: command.room, user: command.user, action: command.action)
            let other = texts.updateValue(bare, forKey: CommandText.canonical(command))
            if let other, other != bare { Issue.record("\(other) and \(bare)") }
        }
        #expect(texts.count > 1_000)
    }

    private static func mangle(_ body: [UInt8], _ generator: inout Generator) -> [UInt8] {
        var body = body
        for _ in 0..<Int.random(in: 0...3, using: &generator) where !body.isEmpty {
            let place = Int.random(in: 0..<body.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: body[place] = UInt8.random(in: .min ... .max, using: &generator)
            case 1: body.remove(at: place)
            case 2: body.insert(contentsOf: body[place...].prefix(5), at: place)
            default: body[place] = Array("{}[]\":,\\0ut1".utf8).randomElement(using: &generator) ?? 0
            }
        }
        return body
    }

    private static func properties(_ generator: inout Generator) -> Properties {
        let choices: [ShortString?] = [
            nil, "", "application/json", "status", "gzip", ShortString(bytes: [0xFF, 0, 0x0A]),
        ]
        func choose(_ chance: Int) -> ShortString? {
            Int.random(in: 0..<chance, using: &generator) == 0
                ? choices.randomElement(using: &generator) ?? nil : nil
        }
        return Properties(
            contentType: choose(8), contentEncoding: choose(16), messageID: choose(3), type: choose(3))
    }

    private static func command(_ generator: inout Generator) -> Command {
        var source = CommandSource(generator: generator)
        defer { generator = source.generator }
        return source.command()
    }
}

/// Makes commands of every kind, with every argument there or not.
private struct CommandSource {
    var generator: RandomInputTests.Generator

    mutating func command() -> Command {
        let room = RoomID(name())
        let user = UserID(name())
        let maybeUser = flip() ? user : nil
        let id = flip() ? CommandID(name()) : nil
        switch pick(CommandKind.allCases, else: .status) {
        case .open: return Command(room: room, id: id, action: .open(openRequest()))
        case .join:
            let role = flip() ? pick(Role.allCases, else: .viewer) : nil
            return Command(room: room, user: user, id: id, action: .join(role: role))
        case .leave: return Command(room: room, user: user, id: id, action: .leave)
        case .extend: return Command(room: room, user: maybeUser, id: id, action: .extend(by: maybeSpan()))
        case .destroy: return Command(room: room, user: maybeUser, id: id, action: .destroy)
        case .status: return Command(room: room, id: id, action: .status)
        }
    }

    private mutating func openRequest() -> OpenRequest {
        var request = OpenRequest(duration: maybeSpan())
        if flip() { request.moderators = (0..<number(0...2)).map { _ in UserID(name()) } }
        guard flip() else { return request }
        var policy = PolicyRequest(maxTotal: maybeSpan())
        if flip() { policy.windows = (0..<number(0...3)).map { _ in span() } }
        if flip() {
            policy.extension = ExtensionRequest(min: maybeSpan(), max: maybeSpan(), default: maybeSpan())
        }
        if flip() { policy.extenders = pick(Extenders.allCases, else: .anyone) }
        if flip() { policy.maxExtensions = Int64(number(0...3)) }
        if flip() { policy.clock = pick(SessionClock.allCases, else: .open) }
        if flip() { policy.reopen = pick(Reopening.allCases, else: .join) }
        request.policy = policy
        return request
    }

    private mutating func flip() -> Bool { Bool.random(using: &generator) }

    private mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &generator)
    }

    private mutating func pick<Value>(_ values: [Value], else fallback: Value) -> Value {
        values.randomElement(using: &generator) ?? fallback
    }

    private mutating func span() -> TimeSpan {
        let most = flip() ? 5_000 : TimeSpan.longest.milliseconds
        return TimeSpan(milliseconds: Int64.random(in: 1...most, using: &generator))
    }

    private mutating func maybeSpan() -> TimeSpan? { flip() ? span() : nil }

    private mutating func name() -> String {
        let letters = Array("ab\"\\é😀,:{}")
        return String((0..<number(1...4)).map { _ in pick(letters, else: "a") })
    }
}
