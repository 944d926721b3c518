import Foundation
import OvertimeClient
import Synchronization
import Testing

/// The feature's source text, `../shared/seed.txt`, played through the library against a real worker and scheduler. Its sentences
/// are counted in their order, headings and lists too; each is played by a step that names its number.
@Suite(.enabled(if: LibraryStack.isThere, LibraryStack.missing))
struct SeedTests {
    @Test("every sentence of the text is true here")
    func text() async throws {
        try await withStack { _, overtime in
            var played = Set<Int>()
            played.formUnion(try await length(overtime))
            played.formUnion(try await usualWindows(overtime))
            played.formUnion(try await windowsAndExtensions(overtime))
            played.formUnion(try await destruction(overtime))
            // What is a heading, a number or says nothing by itself.
            let silent: Set = [1, 5, 6, 7, 8, 11, 15, 19, 22, 26, 34]
            let path = URL(filePath: #filePath).appending(path: "../../../../shared/seed.txt").standardized
            guard let text = try? String(contentsOf: path, encoding: .utf8) else {
                print(
                    "\(path.lastPathComponent) is not there: that no sentence of it is left out was not looked at"
                )
                return
            }
            let count = sentences(of: text)
            #expect(Set(1...count).subtracting(silent) == played)
        }
    }

    private func sentences(of text: String) -> Int {
        text.split(separator: "\n").filter { $0.contains(where: { $0 == "." || $0 == ":" }) }
            // Each full stop before a capital, or a tab's, begins another one.
            .map { $0.trimmingCharacters(in: .whitespaces).matches(of: /\.\s+[A-Z]/).count + 1 }
            .reduce(0, +)
    }

    /// 2: a room has a length. 3: it counts from the first join. 4: then the session is dropped.
    private func length(_ overtime: Overtime) async throws -> Set<Int> {
        try await overtime.open(
            "length",
            .init(
                duration: .seconds(2),
                policy: .init(windows: [.seconds(1)], extension: .init(min: .seconds(1)))))
        let (alice, bob) = (Listener(), Listener())
        let rooms = [
            try await overtime.enter("length", user: "alice", delegate: alice),
            try await overtime.enter("length", user: "bob", delegate: bob),
        ]
        let session = try #require(try await overtime.status("length").session)
        let (start, end) = (try #require(session.startedAt), try #require(session.endsAt))
        #expect(end.timeIntervalSince(start) == 2)
        for listener in [alice, bob] {
            let over = try await listener.wait("the end of the session") { $0.disconnected.first }
            #expect(over.cause == .elapsed && over.by == nil && (over.endedAt.map { $0 >= end } ?? false))
        }
        // A room that nobody keeps is told nothing.
        withExtendedLifetime(rooms) {}
        return [2, 3, 4]
    }

    /// 9, 16, 20 with the lengths of the text itself: windows at ten and five minutes, extensions by 10 to 30. 10, 18: who
    /// comes while a window is open is told. 21: how much may differ.
    private func usualWindows(_ overtime: Overtime) async throws -> Set<Int> {
        for (room, minutes, window, granted) in [("nine", 9, 1, nil), ("five", 5, 2, 60.0)]
            as [(String, Int, Int, Double?)]
        {
            try await overtime.open(room, .init(duration: .seconds(minutes * 60)))
            let listener = Listener()
            let entered = try await overtime.enter(room, user: "alice", delegate: listener)
            let told = try await listener.wait("the window of \(minutes) minutes") { $0.remaining.first }
            #expect(told.window == window && told.isFinal == (window == 2))
            #expect(abs(told.minutesLeft - Double(minutes)) < 0.2)
            let reply =
                if let granted {
                    try await overtime.extend(room, user: "alice", by: .seconds(granted * 60))
                } else {
                    try await entered.extendConferenceDuration()
                }
            #expect(reply.result.extendedTime == .seconds(granted == nil ? 600 : 1_800))
        }
        try await overtime.open("hour", .init(duration: .seconds(3_600)))
        let session = try #require(try await overtime.join("hour", user: "alice").session)
        let (next, end) = (try #require(session.nextWindowAt), try #require(session.endsAt))
        #expect(end.timeIntervalSince(next) == 600)
        return [9, 16, 20, 21]
    }

    /// 10: everybody is told when a window opens, 27, 28: with the minutes left. 12: anybody extends it, 25: without a
    /// parameter. 13, 14: that closes the window for everybody. 29: they are told. 17, 18: where nobody extends, a final
    /// window opens. 23, 24: there is no end to it. 30, 31: the names of the notices are the delegate's.
    private func windowsAndExtensions(_ overtime: Overtime) async throws -> Set<Int> {
        try await overtime.open(
            "windows",
            .init(
                duration: .seconds(4),
                policy: .init(
                    windows: [.seconds(3), .milliseconds(1_500)], extension: .init(min: .seconds(3)))))
        let (alice, bob) = (Listener(), Listener())
        let first = try await overtime.enter("windows", user: "alice", delegate: alice)
        let second = try await overtime.enter("windows", user: "bob", role: .viewer, delegate: bob)
        let early = await #expect(throws: OvertimeError.self) { try await second.extendConferenceDuration() }
        guard case .refused(let refusal) = early, refusal.reason == .windowNotOpen, refusal.opensAt != nil
        else {
            Issue.record("before its window: \(String(describing: early))")
            return []
        }
        // Twice in the first window, the third time in the final one.
        for cycle in 1...3 {
            for listener in [alice, bob] {
                let told = try await listener.wait("window 1, time \(cycle)") { heard in
                    heard.remaining.filter { $0.window == 1 }.dropFirst(cycle - 1).first
                }
                #expect(!told.isFinal && told.minutesLeft > 0.02 && told.minutesLeft <= 0.05)
            }
            if cycle == 3 {
                for listener in [alice, bob] {
                    let told = try await listener.wait("the final window") {
                        $0.remaining.first { $0.window == 2 }
                    }
                    #expect(told.isFinal && told.minutesLeft <= 0.025)
                }
            }
            let (quick, slow) = cycle == 1 ? (first, second) : (second, first)
            let reply = try await quick.extendConferenceDuration()
            #expect(reply.result.extensions == cycle)
            let late = await #expect(throws: OvertimeError.self) { try await slow.extendConferenceDuration() }
            guard case .refused(let refusal) = late, refusal.reason == .alreadyExtended else {
                Issue.record("after \(cycle) extensions: \(String(describing: late))")
                return []
            }
            #expect(refusal.extendedBy == quick.user && refusal.opensAt != nil)
            for listener in [alice, bob] {
                let told = try await listener.wait("extension \(cycle)") {
                    $0.extended.dropFirst(cycle - 1).first
                }
                #expect(
                    told.extensions == cycle && told.minutesGranted == 0.05 && told.by == .user(quick.user))
                #expect(told.endsAt == reply.result.endsAt)
            }
        }
        let over = try await alice.wait("the end") { $0.disconnected.first }
        #expect(over.cause == .elapsed)
        #expect(alice.heard.remaining.count == 3 + 1 + 2 && bob.heard.extended.count == 3)
        return [10, 12, 13, 14, 17, 18, 23, 24, 25, 27, 28, 29, 30, 31]
    }

    /// 32, 33: a moderator ends the session, without a parameter. 35, 37: and is told so. 36: everybody is disconnected. 38, 39: a
    /// participant gets 5116.
    private func destruction(_ overtime: Overtime) async throws -> Set<Int> {
        try await overtime.open("destroy", .init(duration: .seconds(3_600)))
        let (alice, bob) = (Listener(), Listener())
        let moderator = try await overtime.enter("destroy", user: "alice", role: .moderator, delegate: alice)
        let participant = try await overtime.enter("destroy", user: "bob", role: .participant, delegate: bob)
        let error = await #expect(throws: OvertimeError.self) { try await participant.destroy() }
        guard case .refused(let refusal) = error, refusal.code == 5116, refusal.reason == .unauthorized else {
            Issue.record("a participant's destroy: \(String(describing: error))")
            return []
        }
        try await moderator.destroy()
        #expect(try await alice.wait("the acknowledgement") { $0.acknowledged.first }.by == "alice")
        for listener in [alice, bob] {
            let over = try await listener.wait("the disconnection") { $0.disconnected.first }
            #expect(over.cause == .destroyed && over.by == "alice")
        }
        #expect(bob.heard.acknowledged.isEmpty)
        return [32, 33, 35, 36, 37, 38, 39]
    }
}

/// What a user was told.
private final class Listener: Overtime.RoomDelegate {
    struct Heard: Sendable {
        var remaining: [Overtime.RemainingDuration] = []
        var extended: [Overtime.ExtendedDuration] = []
        var acknowledged: [Overtime.DestroyAcknowledgement] = []
        var disconnected: [Overtime.Disconnection] = []
    }

    private let state = Mutex(Heard())
    private let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    var heard: Heard { state.withLock { $0 } }

    func room(_ room: Overtime.Room, didConferenceRemainingDuration data: Overtime.RemainingDuration) {
        note { $0.remaining.append(data) }
    }

    func room(_ room: Overtime.Room, didConferenceExtended data: Overtime.ExtendedDuration) {
        note { $0.extended.append(data) }
    }

    func room(_ room: Overtime.Room, didAckDestroy data: Overtime.DestroyAcknowledgement) {
        note { $0.acknowledged.append(data) }
    }

    func room(_ room: Overtime.Room, didRoomDisconnected data: Overtime.Disconnection) {
        note { $0.disconnected.append(data) }
    }

    /// Waits until it has heard it.
    func wait<Value: Sendable>(
        _ what: Comment, _ find: @escaping @Sendable (Heard) -> Value?
    ) async throws -> Value {
        let changes = changes
        let found = await within(20) { [self] in
            if let value = find(heard) { return value as Value? }
            for await _ in changes { if let value = find(heard) { return value } }
            return nil
        }
        return try #require(found.flatMap { $0 }, what)
    }

    private func note(_ change: (inout Heard) -> Void) {
        state.withLock { change(&$0) }
        self.change.yield()
    }
}
