import Foundation
import OvertimeClient
import Testing

/// Sequences of events against a real worker.
@Suite(.enabled(if: LibraryStack.isThere, LibraryStack.missing))
struct EventsTests {
    @Test("events come typed and in order, of one room where that is asked for")
    func typed() async throws {
        try await withStack { _, overtime in
            let all = try await overtime.events()
            let one = try await overtime.events(of: "b")
            try await overtime.open("a", .init(duration: .seconds(600), moderators: ["alice"]))
            try await overtime.open("b")
            try await overtime.join("b", user: "bob")
            try await overtime.join("a", user: "alice")
            try await overtime.destroy("a", user: "alice")
            let types = try await collect("the events of a", all, room: "a", count: 6)
            #expect(
                types == [
                    "room.opened", "session.started", "participant.joined", "session.window.opened",
                    "session.destroy.acknowledged", "session.ended",
                ])
            let ofB = try await collect("the events of b", one, room: nil, count: 3)
            #expect(ofB == ["room.opened", "session.started", "participant.joined"])
        }
    }

    @Test("without the log events come all the same")
    func live() async throws {
        let stack = try LibraryStack(services: [])
        defer { stack.stop() }
        try stack.start("worker", environment: ["OVERTIME_AMQP_LOG": "off"])
        var configuration = try stack.configuration()
        configuration.usesLog = false
        let overtime = try Overtime(configuration)
        _ = try await overtime.rooms()
        let events = try await overtime.events()
        try await overtime.open("a")
        #expect(try await collect("an event", events, room: nil, count: 1) == ["room.opened"])
        await #expect(throws: OvertimeError.self) { try await overtime.events(from: .beginning) }
        await overtime.close()
    }

    @Test("from the beginning, from an instant and after a position the log is read, then what comes")
    func log() async throws {
        try await withStack { _, overtime in
            for number in 0..<5 { try await overtime.open("room-\(number)") }
            let from = try await overtime.open("late").serverTime
            let events = try await overtime.events(from: .beginning)
            let rooms = Mutexed<[Overtime.Event]>([])
            _ = try await first("six events of the log", of: events) { notice -> Bool? in
                guard case .event(let event) = notice else { return nil }
                return rooms.append(event) == 6 ? true : nil
            }
            let found = rooms.value
            #expect(found.map(\.room) == (0..<5).map { "room-\($0)" } + ["late"])
            let position = try #require(found[2].position)
            let after = try await overtime.events(from: .after(position, seen: ["room-3": 1]))
            let next = try await first("the first event after the third", of: after) { $0.event?.room }
            #expect(next == "room-4")
            let timed = try await overtime.events(from: .time(from))
            #expect(try await first("the first event of an instant", of: timed) { $0.event?.room } == "late")
        }
    }

    @Test("a sequence ends with its task, with itself and with its client")
    func ends() async throws {
        try await withStack(services: ["worker"]) { _, overtime in
            let cancelled = try await overtime.events()
            let task = Task { for await _ in cancelled {} }
            task.cancel()
            #expect(await within(10) { await task.value } != nil, "the cancelled sequence to end")
            let closed = try await overtime.events()
            let reader = Task { for await _ in closed {} }
            await closed.close()
            #expect(await within(10) { await reader.value } != nil, "the closed sequence to end")
            let last = try await overtime.events()
            let lastReader = Task { for await _ in last {} }
            await overtime.close()
            #expect(
                await within(10) { await lastReader.value } != nil, "the sequence of a closed client to end")
        }
    }

    private func collect(
        _ what: Comment, _ events: Overtime.Events, room: String?, count: Int
    ) async throws -> [String] {
        let types = Mutexed<[String]>([])
        _ = try await first(what, of: events) { notice -> Bool? in
            guard case .event(let event) = notice, room == nil || event.room == room else { return nil }
            return types.append(event.type) == count ? true : nil
        }
        return types.value
    }
}
