import AMQP
import Contract
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("Start")
struct StartTests {
    private static let definition = Definition(
        duration: .minutes(60), moderators: nil,
        policy: Policy(
            windows: [.minutes(10), .minutes(5)],
            extension: ExtensionBounds(min: .minutes(10), max: .minutes(30), default: .minutes(10)),
            extenders: .anyone, maxExtensions: nil, maxTotal: nil, clock: .firstJoin, reopen: .command))

    private static func overdue(_ id: RoomID) -> Room {
        let start = Instant(milliseconds: Bench.noon) - .minutes(120)
        return Room(
            id: id, definition: definition, sequence: 3, sessionNumber: 1, isOpen: true,
            session: Session(
                number: 1, definition: definition,
                phase: .running(Run(startedAt: start, endsAt: start + .minutes(60))), connected: 1,
                changedAt: start))
    }

    private static func message(_ room: RoomID, _ sequence: Int64) -> OutboxDraft {
        OutboxDraft(
            room: room, sequence: sequence, type: "session.started", messageID: "\(room.text):\(sequence)",
            timestamp: 1, body: [1])
    }

    private static func put(_ rooms: [Room], _ drafts: [OutboxDraft], in store: any RoomStore) throws {
        _ = try store.commit(
            BatchCommit(
                rooms: rooms.map { RoomWrite(room: $0, expectedVersion: 0, isChanged: true) }, outbox: drafts)
        )
    }

    @Test("The outbox goes first, then overdue rooms, then the queues are opened")
    func order() throws {
        let bench = try Bench(prepare: {
            try Self.put(
                [Self.overdue("late")], (1...1_200).map { Self.message("old", Int64($0)) }, in: $0)
        })
        bench.broker.wishes = []
        bench.start()
        #expect(bench.events == (1...1_200).map { "old:\($0)" } + ["late:4"])
        #expect(bench.eventTypes.last == "session.ended")
        #expect(bench.broker.wishes == [ConsumerChannel.commands, ConsumerChannel.ticks])
        bench.pass(200)
        #expect(try bench.outbox().isEmpty)
    }

    @Test("With no publisher yet the outbox fills its bound, and no queue is opened before it is read")
    func withoutPublisher() throws {
        let bench = try Bench(
            prepare: { try Self.put([], (1...1_200).map { Self.message("old", Int64($0)) }, in: $0) },
            adjust: { $0.eventBound = 600 })
        bench.connectConsumer()
        bench.settle()
        #expect(bench.broker.wishes.isEmpty)
        #expect(bench.worker.outbox.held < 1_200)
        bench.connectPublisher()
        bench.pass(200)
        #expect(bench.events.count == 1_200)
        #expect(bench.broker.wishes.count == 2)
    }

    @Test("Thousands of overdue rooms are brought up to date in pages, each once")
    func pages() throws {
        let bench = try Bench(prepare: {
            try Self.put((0..<1_300).map { Self.overdue(RoomID("r\($0)")) }, [], in: $0)
        })
        bench.start()
        #expect(bench.events.count == 1_300)
        #expect(Set(bench.events).count == 1_300)
        #expect(bench.broker.wishes.count == 2)
    }

    @Test("An overdue room that cannot be read is named and left out; the others end and commands are served")
    func unreadableRoom() throws {
        let bench = try Bench(prepare: {
            try Self.put(["a", "bad", "c"].map { Self.overdue(RoomID($0)) }, [], in: $0)
        })
        bench.store.loadFailure = {
            $0.rooms.contains("bad") ? .corruptRoom("bad", "its rows make no sense") : nil
        }
        bench.start()
        bench.pass(5_000)
        #expect(Set(bench.events) == ["a:4", "c:4"])
        #expect(bench.broker.wishes.count == 2)
        #expect(bench.worker.counters.storeFailures == 0)
        #expect(bench.logFile.lines(containing: "room=bad").count == 1)
        bench.command("o", "open")
        bench.settle()
        #expect(bench.broker.acknowledged == ["o"])
    }

    @Test("A list of rooms that cannot be read keeps no room waiting: what is due waits for its tick")
    func unreadableList() throws {
        let bench = try Bench(prepare: { try Self.put([Self.overdue("late")], [], in: $0) })
        bench.store.failure = { $0 == .overdue ? .io(code: 10, "disk") : nil }
        bench.start()
        bench.pass(1_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil, "once may be chance")
        bench.pass(10_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] != nil)
        #expect(bench.logFile.lines(containing: "the store fails on the list of rooms").count == 1)
        bench.tick("t", ["late"])
        bench.settle()
        #expect(bench.events == ["late:4"])
    }

    @Test(
        "A store that fails at the start is waited for",
        arguments: [FlakyStore.Call.unpublished, .overdue, .commit])
    func failingStore(call: FlakyStore.Call) throws {
        let bench = try Bench(prepare: {
            try Self.put([Self.overdue("late")], [Self.message("old", 1)], in: $0)
        })
        // One that takes a probe has trouble with a room, and serves the others.
        bench.store.failure = { $0 == call || $0 == .check ? .io(code: 10, "disk") : nil }
        bench.start()
        bench.pass(3_000)
        #expect(bench.broker.consuming[ConsumerChannel.commands] == nil)
        bench.store.failure = { _ in nil }
        bench.pass(11_000)
        #expect(bench.events == ["old:1", "late:4"])
        #expect(bench.broker.consuming[ConsumerChannel.commands] != nil)
    }
}
