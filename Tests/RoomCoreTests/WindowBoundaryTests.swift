import RoomCore
import Testing

/// A session of a given length with windows, started at zero.
struct Shape: Sendable {
    let minutes: Int64
    /// In milliseconds.
    let windows: [Int64]

    static let usual = Shape(minutes: 60, windows: [600_000, 300_000])
    static let single = Shape(minutes: 60, windows: [600_000])
    static let eight = Shape(
        minutes: 60, windows: [480_000, 420_000, 360_000, 300_000, 240_000, 180_000, 120_000, 60_000])
    /// Shorter than its first window: open from the start.
    static let short = Shape(minutes: 7, windows: [600_000, 300_000])
    /// Starts exactly when its first window opens.
    static let fitting = Shape(minutes: 10, windows: [600_000, 300_000])
    /// Starts exactly when its final window opens.
    static let final = Shape(minutes: 5, windows: [600_000, 300_000])
    /// Windows of a millisecond.
    static let thin = Shape(minutes: 60, windows: [2, 1])

    var running: Scene {
        Scene.running(minutes: minutes, PolicyRequest(windows: windows.map { .ms($0) }))
    }
}

/// What holds at one instant of a shape, if nothing happened since its start.
struct Boundary: Sendable, CustomTestStringConvertible {
    let shape: Shape
    let now: Instant
    /// The open window; nil before the first.
    let window: Int?
    /// The next opening; nil in the final window.
    let next: Instant?
    /// Whether the open window was open from the start, and so announced then.
    let fromStart: Bool
    let isOver: Bool

    init(
        _ shape: Shape, _ now: Instant, window: Int? = nil, next: Instant? = nil, fromStart: Bool = false,
        over: Bool = false
    ) {
        self.shape = shape
        self.now = now
        self.window = window
        self.next = next
        self.fromStart = fromStart
        self.isOver = over
    }

    var testDescription: String {
        "\(shape.minutes)m \(shape.windows) at \((now - Instant.at(0)).milliseconds) ms"
    }

    var end: Instant { .at(shape.minutes) }

    /// What comes due there.
    var due: [String] {
        if isOver { return ["ended elapsed"] }
        guard let window, !fromStart else { return [] }
        return ["window \(window)"]
    }

    static let all: [Boundary] = [
        // The default policy: before the first window, at its opening, at the final one's, at the end.
        Boundary(.usual, .at(0), next: .at(50)),
        Boundary(.usual, .at(50, -1), next: .at(50)),
        Boundary(.usual, .at(50), window: 1, next: .at(55)),
        Boundary(.usual, .at(50, 1), window: 1, next: .at(55)),
        Boundary(.usual, .at(55, -1), window: 1, next: .at(55)),
        Boundary(.usual, .at(55), window: 2),
        Boundary(.usual, .at(55, 1), window: 2),
        Boundary(.usual, .at(60, -1), window: 2),
        Boundary(.usual, .at(60), over: true),
        Boundary(.usual, .at(60, 1), over: true),
        Boundary(.usual, .at(100_000), over: true),
        // One window: the first is the final one.
        Boundary(.single, .at(50, -1), next: .at(50)),
        Boundary(.single, .at(50), window: 1),
        Boundary(.single, .at(50, 1), window: 1),
        Boundary(.single, .at(60, -1), window: 1),
        Boundary(.single, .at(60), over: true),
        Boundary(.single, .at(60, 1), over: true),
        // Eight windows, a minute each.
        Boundary(.eight, .at(52, -1), next: .at(52)),
        Boundary(.eight, .at(52), window: 1, next: .at(53)),
        Boundary(.eight, .at(53, -1), window: 1, next: .at(53)),
        Boundary(.eight, .at(53), window: 2, next: .at(54)),
        Boundary(.eight, .at(54), window: 3, next: .at(55)),
        Boundary(.eight, .at(55, 1), window: 4, next: .at(56)),
        Boundary(.eight, .at(57, -1), window: 5, next: .at(57)),
        Boundary(.eight, .at(57), window: 6, next: .at(58)),
        Boundary(.eight, .at(59, -1), window: 7, next: .at(59)),
        Boundary(.eight, .at(59), window: 8),
        Boundary(.eight, .at(59, 1), window: 8),
        Boundary(.eight, .at(60, -1), window: 8),
        Boundary(.eight, .at(60), over: true),
        // Shorter than the first window.
        Boundary(.short, .at(0), window: 1, next: .at(2), fromStart: true),
        Boundary(.short, .at(2, -1), window: 1, next: .at(2), fromStart: true),
        Boundary(.short, .at(2), window: 2),
        Boundary(.short, .at(2, 1), window: 2),
        Boundary(.short, .at(7, -1), window: 2),
        Boundary(.short, .at(7), over: true),
        // Starts exactly at an opening.
        Boundary(.fitting, .at(0), window: 1, next: .at(5), fromStart: true),
        Boundary(.fitting, .at(0, 1), window: 1, next: .at(5), fromStart: true),
        Boundary(.fitting, .at(5, -1), window: 1, next: .at(5), fromStart: true),
        Boundary(.fitting, .at(5), window: 2),
        Boundary(.fitting, .at(10), over: true),
        Boundary(.final, .at(0), window: 2, fromStart: true),
        Boundary(.final, .at(5, -1), window: 2, fromStart: true),
        Boundary(.final, .at(5), over: true),
        // Windows of a millisecond.
        Boundary(.thin, .at(60, -3), next: .at(60, -2)),
        Boundary(.thin, .at(60, -2), window: 1, next: .at(60, -1)),
        Boundary(.thin, .at(60, -1), window: 2),
        Boundary(.thin, .at(60), over: true),
    ]
}

@Suite("Every boundary of a session")
struct WindowBoundaryTests {
    @Test("A tick announces the open window once, or the end once", arguments: Boundary.all)
    func tick(_ boundary: Boundary) {
        var scene = boundary.shape.running
        let step = scene.tick(at: boundary.now)
        #expect(step.log == boundary.due)
        #expect(step.transition.isChange == !boundary.due.isEmpty)
        #expect(scene.room.dueAt == (boundary.isOver ? nil : boundary.next ?? boundary.end))
        #expect(scene.tick(at: boundary.now).log.isEmpty)
    }

    @Test("Extend is granted in every open window and nowhere else", arguments: Boundary.all)
    func extend(_ boundary: Boundary) {
        var scene = boundary.shape.running
        let step = scene.extend("bob", at: boundary.now)
        if boundary.isOver {
            #expect(step.answer == "no_session")
            #expect(step.log == boundary.due)
        } else if boundary.window == nil {
            #expect(step.answer == "window_not_open")
            #expect(step.refusal?.opensAt == boundary.next)
            #expect(step.log.isEmpty)
        } else {
            let newEnd = boundary.end + .minutes(10)
            #expect(step.outcome == .extended(by: .minutes(10), endsAt: newEnd, extensions: 1))
            #expect(step.log == boundary.due + ["extended 10m"])
            #expect(step.extended?.previousEndsAt == boundary.end)
            #expect(scene.room.dueAt == newEnd - .ms(boundary.shape.windows[0]))
            #expect(scene.snapshot(at: boundary.now)?.window == nil)
        }
    }

    @Test("Destroy works until the end and finds no session from then on", arguments: Boundary.all)
    func destroy(_ boundary: Boundary) {
        var scene = boundary.shape.running
        let step = scene.destroy("ann", at: boundary.now)
        #expect(step.answer == (boundary.isOver ? "no_session" : "done"))
        #expect(
            step.log == boundary.due + (boundary.isOver ? [] : ["acknowledged ann", "ended destroyed"]))
        #expect(scene.room.dueAt == nil)
    }

    @Test("Join works until the end; afterwards the session is over", arguments: Boundary.all)
    func join(_ boundary: Boundary) {
        var scene = boundary.shape.running
        let step = scene.join("cid", at: boundary.now)
        #expect(step.answer == (boundary.isOver ? "session_over" : "participant"))
        #expect(step.log == boundary.due + (boundary.isOver ? [] : ["joined cid"]))
        #expect(scene.people.count == (boundary.isOver ? 0 : 3))
    }

    @Test("Leave works until the end and finds no session from then on", arguments: Boundary.all)
    func leave(_ boundary: Boundary) {
        var scene = boundary.shape.running
        let step = scene.leave("bob", at: boundary.now)
        #expect(step.answer == (boundary.isOver ? "no_session" : "done"))
        #expect(step.log == boundary.due + (boundary.isOver ? [] : ["left bob"]))
    }

    @Test("Status shows the window, the next one and the time left", arguments: Boundary.all)
    func status(_ boundary: Boundary) throws {
        var scene = boundary.shape.running
        let step = scene.status(at: boundary.now)
        #expect(step.answer == "done")
        #expect(step.log == boundary.due)
        let shown = try #require(scene.snapshot(at: step.judgedAt))
        #expect(shown.state == (boundary.isOver ? .ended : .running))
        #expect(shown.startedAt == .at(0))
        #expect(shown.endsAt == boundary.end)
        #expect(shown.timeLeft == (boundary.isOver ? .zero : boundary.end - boundary.now))
        #expect(shown.window == boundary.window)
        #expect(shown.nextWindowAt == boundary.next)
        #expect(shown.connected == (boundary.isOver ? 0 : 2))
        #expect(shown.endedAt == (boundary.isOver ? boundary.now : nil))
        #expect(shown.cause == (boundary.isOver ? .elapsed : nil))
        #expect(shown.number == 1)
        #expect(shown.extensions == 0)
    }

    @Test("A session that starts inside a window has it announced from its start, not late")
    func openFromStart() {
        for (shape, window, next) in [
            (Shape.short, 1, Instant.at(2)), (.fitting, 1, .at(5)), (.final, 2, .at(5)),
        ] {
            var scene = Scene.opened(minutes: shape.minutes)
            let step = scene.join("ann", at: .at(0))
            #expect(step.log == ["started", "joined ann", "window \(window)"])
            #expect(step.window?.dueAt == .at(0))
            #expect(step.window?.lateBy == .zero)
            #expect(step.window?.timeLeft == .minutes(shape.minutes))
            #expect(step.window?.nextDueAt == next)
            #expect(step.window?.isFinal == (window == 2))
            guard case .sessionStarted(_, let endsAt, let duration, let nextDueAt) = step.kinds.first else {
                Issue.record("no session.started")
                continue
            }
            #expect(endsAt == .at(shape.minutes))
            #expect(duration == .minutes(shape.minutes))
            #expect(nextDueAt == next)
        }
    }
}
