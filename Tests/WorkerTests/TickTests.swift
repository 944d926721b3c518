import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("Ticks")
struct TickTests {
    private func answers(_ bench: Bench) -> [TickAnswer] {
        bench.broker.published.filter { $0.channel == PublisherChannel.replies }
            .compactMap { TickAnswer.decode($0.publication.body) }
    }

    private func running(_ rooms: Int) throws -> Bench {
        let bench = try Bench.serving()
        for number in 0..<rooms {
            bench.command("o\(number)", "open", "r\(number)", replies: false)
            bench.command("j\(number)", "join", "r\(number)", user: "u", replies: false)
        }
        bench.settle()
        bench.broker.published = []
        return bench
    }

    @Test("What is due is announced by its event, and each room answered with its next instant")
    func answered() throws {
        let bench = try running(1)
        bench.clock.advance(50 * 60_000)
        bench.tick("t", ["r0", "unknown"])
        bench.settle()
        #expect(bench.eventTypes == ["session.window.opened"])
        #expect(bench.broker.acknowledged.contains("t"))
        let answer = try #require(answers(bench).first)
        #expect(answer.serverTime.milliseconds == bench.clock.nowMilliseconds())
        let next = Instant(milliseconds: Bench.noon) + .minutes(55)
        #expect(
            answer.rooms == [
                TickAnswer.Row(room: "r0", nextDueAt: next, sequence: 4),
                TickAnswer.Row(room: "unknown", nextDueAt: nil, sequence: 0),
            ])
        bench.tick("t2", ["r0"])
        bench.settle()
        let second = try #require(answers(bench).last)
        #expect(second.rooms == [TickAnswer.Row(room: "r0", nextDueAt: next, sequence: 4)])
    }

    @Test("A redelivered tick, garbage and an empty one are acknowledged unread")
    func unread() throws {
        let bench = try running(1)
        bench.clock.advance(50 * 60_000)
        bench.tick("again", ["r0"], redelivered: true)
        bench.put("garbage", "%%", on: ConsumerChannel.ticks)
        bench.put("empty", #"{"scheduler":"s","rooms":[]}"#, on: ConsumerChannel.ticks)
        bench.settle()
        #expect(Set(bench.broker.acknowledged).isSuperset(of: ["again", "garbage", "empty"]))
        #expect(bench.events.isEmpty)
    }

    @Test("Ticks go before a backlog of commands, and a flood of ticks starves no command")
    func fairness() throws {
        let bench = try running(1)
        let before = bench.store.commits.count
        bench.put("hold", "{}")
        for number in 0..<2_000 { bench.command("c\(number)", "status", "r0", replies: false) }
        for number in 0..<8 {
            bench.tick("t\(number)", (0..<500).map { RoomID("x\($0)") }, replies: false)
        }
        bench.settle()
        let commits = bench.store.commits.dropFirst(before)
        #expect(commits.first?.rooms.contains { $0.room.id == "x0" } == true)
        // 4,000 rooms of ticks and 2,000 commands, half a batch of each while both wait.
        #expect(commits.count < 20)
        let firstWithoutCommands = commits.firstIndex { !$0.rooms.contains { $0.room.id == "r0" } }
        #expect(firstWithoutCommands.map { $0 - before } ?? 0 >= 4)
        #expect(bench.broker.isDone(ConsumerChannel.ticks))
        #expect(bench.broker.isDone(ConsumerChannel.commands))
    }

    @Test("A tick of 500 rooms is acknowledged when its last part is decided, and answered in parts")
    func large() throws {
        let bench = try running(1)
        bench.command("slow", "status", "r0", replies: false)
        bench.tick("t", (0..<500).map { RoomID("x\($0)") })
        bench.settle()
        #expect(answers(bench).flatMap(\.rooms).count == 500)
        #expect(bench.broker.acknowledged.filter { $0 == "t" }.count == 1)
        #expect(bench.broker.faults == [])
    }

    @Test("The end of a session is announced once, by whoever comes first")
    func once() throws {
        let bench = try running(1)
        bench.clock.advance(3_600_000)
        for number in 0..<5 { bench.tick("t\(number)", ["r0", "r0"]) }
        bench.command("l", "leave", "r0", user: "u")
        bench.settle()
        #expect(bench.eventTypes.filter { $0 == "session.ended" }.count == 1)
    }
}
