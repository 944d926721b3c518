import Foundation
import OvertimeClient
import Testing

/// Calls against a real worker.
@Suite(.enabled(if: LibraryStack.isThere, LibraryStack.missing))
struct CallTests {
    @Test("every command has its typed result, and every refusal its reason")
    func commands() async throws {
        try await withStack { _, overtime in
            let refusal = await #expect(throws: OvertimeError.self) {
                try await overtime.join("demo", user: "alice")
            }
            guard case .refused(let unknown) = refusal else {
                Issue.record("\(String(describing: refusal))")
                return
            }
            #expect(unknown.reason == .unknownRoom && unknown.code == 6002 && unknown.session == nil)

            let opened = try await overtime.open(
                "demo", .init(duration: .seconds(3_600), moderators: ["alice"]))
            #expect(opened.session == nil && opened.sequence == 1)
            let joined = try await overtime.join("demo", user: "alice")
            #expect(joined.result.role == .moderator)
            let session = try #require(joined.session)
            #expect(session.number == 1 && session.state == .running && session.connected == 1)
            let (start, end) = (try #require(session.startedAt), try #require(session.endsAt))
            #expect(end.timeIntervalSince(start) == 3_600)
            #expect(try await overtime.join("demo", user: "bob", role: .viewer).result.role == .viewer)

            await expectRefusal(.windowNotOpen, 6004) { try await overtime.extend("demo", user: "bob") }
            await expectRefusal(.notConnected, 6001) { try await overtime.leave("demo", user: "carol") }
            await expectRefusal(.unauthorized, 5116) { try await overtime.destroy("demo", user: "bob") }

            let rooms = try await overtime.rooms()
            #expect(
                rooms.rows.map(\.room) == ["demo"] && rooms.rows.first?.connected == 2 && rooms.next == nil)
            let users = try await overtime.participants(of: "demo")
            #expect(
                users.rows.map(\.user) == ["alice", "bob"] && users.rows.map(\.role) == [.moderator, .viewer])
            await expectRefusal(.unknownRoom, 6002) { try await overtime.participants(of: "none") }

            try await overtime.leave("demo", user: "bob")
            #expect(try await overtime.status("demo").session?.connected == 1)
            let ended = try await overtime.destroy("demo", user: "alice")
            #expect(ended.session?.state == .ended && ended.session?.cause == .destroyed)
        }
    }

    private func expectRefusal<Value>(
        _ reason: Overtime.Refusal.Reason, _ code: Int, _ body: () async throws -> Value
    ) async {
        let error = await #expect(throws: OvertimeError.self) { _ = try await body() }
        guard case .refused(let refusal) = error else {
            Issue.record("\(String(describing: error)) where \(reason) was expected")
            return
        }
        #expect(refusal.reason == reason && refusal.code == code && !refusal.message.isEmpty)
        if reason == .windowNotOpen { #expect(refusal.opensAt != nil) }
    }

    @Test("the same key has one effect and the same answer, another command with it is refused")
    func keys() async throws {
        try await withStack { _, overtime in
            try await overtime.open("demo", .init(duration: .seconds(9 * 60)))
            try await overtime.join("demo", user: "alice")
            let first = try await overtime.extend("demo", user: "alice", key: "k")
            let again = try await overtime.extend("demo", user: "alice", key: "k")
            #expect(first.json == again.json && first.result == again.result && first.key == "k")
            #expect(first.result.extendedTime == .seconds(600) && first.result.extensions == 1)
            await expectRefusal(.idReused, 6009) { try await overtime.leave("demo", user: "alice", key: "k") }
            await expectRefusal(.alreadyExtended, 6005) { try await overtime.extend("demo", user: "alice") }
        }
    }

    @Test("what is wrong by itself is said before anything is sent")
    func malformed() async throws {
        try await withStack { _, overtime in
            for body in [
                { try await overtime.status("") },
                { try await overtime.open("demo", .init(duration: .zero)) },
                { try await overtime.leave("demo", user: "a\nb") },
            ] as [() async throws -> Overtime.Reply<Void>] {
                let error = await #expect(throws: OvertimeError.self) { _ = try await body() }
                guard case .malformed = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
            let error = await #expect(throws: OvertimeError.self) { try await overtime.rooms(limit: 0) }
            guard case .malformed = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("a thousand calls of a thousand tasks share one connection")
    func manyTasks() async throws {
        try await withStack(services: ["worker"]) { _, overtime in
            try await overtime.open("demo")
            let roles = try await withThrowingTaskGroup(of: Overtime.Role.self) { group in
                for number in 0..<1_000 {
                    group.addTask { try await overtime.join("demo", user: "u\(number)").result.role }
                }
                return try await group.reduce(into: [Overtime.Role]()) { $0.append($1) }
            }
            #expect(roles.count == 1_000)
            #expect(try await overtime.status("demo").session?.connected == 1_000)
            var (seen, after): (Int, String?) = (0, nil)
            repeat {
                let page = try await overtime.participants(of: "demo", after: after, limit: 400)
                (seen, after) = (seen + page.rows.count, page.next)
            } while after != nil
            #expect(seen == 1_000)
        }
    }

    @Test("no worker, no broker, a wrong password: each has its own error, in time")
    func failures() async throws {
        let stack = try LibraryStack(services: [])
        defer { stack.stop() }
        let overtime = try await Overtime.connect(stack.configuration())
        await #expect(
            throws: OvertimeError.noWorker("no queue takes what is published to \(stack.prefix).commands")
        ) {
            try await overtime.status("demo", timeout: .seconds(1))
        }
        await #expect(throws: OvertimeError.noWorker("there is no \(stack.prefix).events.log")) {
            try await overtime.events(timeout: .seconds(1))
        }
        await overtime.close()
        await #expect(throws: OvertimeError.closed) { try await overtime.status("demo") }
        await #expect(throws: OvertimeError.closed) { try await overtime.events() }

        var nowhere = try Overtime.Configuration(url: "amqp://127.0.0.1:1/")
        nowhere.timeout = .seconds(1)
        guard
            case .unreachable = await #expect(
                throws: OvertimeError.self, performing: { _ = try await Overtime.connect(nowhere) })
        else {
            Issue.record("a broker that is not there can be reached")
            return
        }
        let wrong = stack.url.replacing(/:[^:@\/]*@/, with: ":wrong@")
        guard
            case .brokerRefuses = await #expect(
                throws: OvertimeError.self, performing: { _ = try await Overtime.connect(wrong) })
        else {
            Issue.record("a wrong password is taken")
            return
        }
    }

    @Test("of several URLs the one that answers is taken, by services and library")
    func severalNodes() async throws {
        let stack = try LibraryStack(services: [])
        defer { stack.stop() }
        let nowhere = stack.url.replacing(/@[^\/]*/, with: "@127.0.0.1:1")
        let urls = "\(nowhere),\(stack.url),\(nowhere)"
        try stack.start("worker", environment: ["OVERTIME_AMQP_URL": urls])
        var configuration = try Overtime.Configuration(url: urls, eventsURL: urls)
        configuration.prefix = stack.prefix
        configuration.timeout = .seconds(20)
        let overtime = try await Overtime.connect(configuration)
        _ = try await overtime.rooms()
        _ = try await overtime.events()
        await overtime.close()
        #expect(throws: OvertimeError.self) {
            try Overtime.Configuration(url: "amqp://alice@a,amqp://bob@b")
        }
    }

    @Test("a cancelled call ends at once, a closed client's too")
    func cancellation() async throws {
        let stack = try LibraryStack(services: [])
        defer { stack.stop() }
        let overtime = try await Overtime.connect(stack.configuration())
        let call = Task { try await overtime.status("demo") }
        call.cancel()
        await #expect(throws: OvertimeError.cancelled) { try await call.value }
        let other = Task { try await overtime.status("demo") }
        await Task.yield()
        await overtime.close()
        await #expect(throws: OvertimeError.closed) { try await other.value }
    }

    @Test("a call that was made before there is a worker is answered once there is one")
    func waits() async throws {
        let stack = try LibraryStack(services: [])
        defer { stack.stop() }
        let overtime = try await Overtime.connect(stack.configuration())
        async let opened = overtime.open("demo")
        try stack.start("worker")
        #expect(try await opened.sequence == 1)
        await overtime.close()
    }
}
