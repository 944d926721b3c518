import RoomCore
import Store
import Testing

/// What every store must do, written against `RoomStore` alone.
@Suite("every store")
struct StoreConformance {}

extension StoreConformance {
    // MARK: Rooms

    @Test("does not know a room that was never written", arguments: StoreFactory.all)
    func unknownRoom(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let state = try fixture.store.load(
            BatchRequest(
                rooms: ["demo", "demo"], participants: [ParticipantKey(room: "other", user: "ann")],
                keys: [CommandKey(room: "demo", id: "c-1")]))
        #expect(
            state.rooms == [
                "demo": StoredRoom(room: Room(id: "demo"), version: 0),
                "other": StoredRoom(room: Room(id: "other"), version: 0),
            ])
        #expect(state.participants.isEmpty)
        #expect(state.answers.isEmpty)
    }

    @Test("gives back any room exactly, written new or over another", arguments: StoreFactory.all)
    func roundTrip(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        for round in 0..<400 {
            let id = RoomID("room \(round % 40) \(random.one(of: ["é", "e\u{301}"]))")
            let room = random.room(id)
            let version = try fixture.store.stored(id).version
            try fixture.store.put(room)
            let found = try fixture.store.stored(id)
            try #require(found == StoredRoom(room: room, version: version + 1), "seed \(seed) round \(round)")
        }
    }

    @Test("keeps rooms apart whose ids differ in bytes only", arguments: StoreFactory.all)
    func bytewiseIdentifiers(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let composed: RoomID = "caf\u{E9}"
        let decomposed: RoomID = "cafe\u{301}"
        try fixture.store.put(.running(composed, sequence: 5))
        #expect(try fixture.store.stored(decomposed).version == 0)
        try fixture.store.put(.running(decomposed, sequence: 6))
        #expect(try fixture.store.stored(composed).room.sequence == 5)
        #expect(try fixture.store.liveRooms(after: nil, limit: 9).map(\.id) == [decomposed, composed])
        #expect(try fixture.store.stored("CAFE\u{301}").version == 0)
    }

    /// In one batch a session ends, the next begins by the definition set meanwhile, and that is set anew.
    @Test(
        "lets the next session take over the definition that its room gives up", arguments: StoreFactory.all)
    func definitionsChangePlaces(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        var room = Room.running("demo", minutes: 10)
        room.definition = .sample(minutes: 20)
        try store.put(room)
        room = .running("demo", session: 2, minutes: 20, sequence: 9)
        room.definition = .sample(minutes: 30)
        try store.put(room)
        #expect(try store.stored("demo").room == room)
        // The other way round, too: the room takes the one that its session gives up.
        room = .running("demo", session: 3, minutes: 30, sequence: 12)
        room.definition = .sample(minutes: 20)
        try store.put(room)
        #expect(try store.stored("demo").room == room)
    }

    @Test("stores a room's definition once it changes, and its session's apart", arguments: StoreFactory.all)
    func definitions(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        var room = Room.running("demo")
        try fixture.store.put(room)
        try fixture.store.put(.running("same definition"))
        room.definition = .sample(minutes: 90, moderators: ["ann"])
        try fixture.store.put(room)
        #expect(try fixture.store.stored("demo").room == room)
        room = .running("demo", session: 2, minutes: 90)
        try fixture.store.put(room)
        #expect(try fixture.store.stored("demo").room == room)
        #expect(try fixture.store.stored("same definition").room == .running("same definition"))
    }

    // MARK: The fence

    @Test("refuses a batch that names an older version, and names the rooms", arguments: StoreFactory.all)
    func conflict(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        try fixture.store.put(.running("a"))
        try fixture.store.put(.running("a", sequence: 4))
        let older = RoomWrite(room: .running("a", sequence: 5), expectedVersion: 1, isChanged: true)
        let unseen = RoomWrite(room: .running("a", sequence: 5), expectedVersion: 0, isChanged: true)
        let ahead = RoomWrite(room: .running("b"), expectedVersion: 1, isChanged: true)
        for write in [older, unseen] {
            #expect(throws: StoreError.conflict(["a"])) {
                try fixture.store.commit(BatchCommit(rooms: [write]))
            }
        }
        #expect(throws: StoreError.conflict(["a", "b"])) {
            try fixture.store.commit(BatchCommit(rooms: [older, ahead]))
        }
        #expect(try fixture.store.stored("a") == StoredRoom(room: .running("a", sequence: 4), version: 2))
    }

    @Test("compares rooms that were only read, also those that do not exist", arguments: StoreFactory.all)
    func conflictOfRead(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        try fixture.store.put(.running("a"))
        let change = RoomWrite(room: .running("b"), expectedVersion: 0, isChanged: true)
        func read(_ id: RoomID, _ version: Int64) -> RoomWrite {
            RoomWrite(room: Room(id: id), expectedVersion: version, isChanged: false)
        }
        for wrong in [read("a", 0), read("a", 2), read("none", 1)] {
            #expect(throws: StoreError.conflict([wrong.room.id])) {
                try fixture.store.commit(BatchCommit(rooms: [change, wrong]))
            }
        }
        #expect(try fixture.store.stored("b").version == 0)
        _ = try fixture.store.commit(BatchCommit(rooms: [change, read("a", 1), read("none", 0)]))
        #expect(try fixture.store.stored("a").version == 1)
        #expect(try fixture.store.stored("b").version == 1)
        #expect(try fixture.store.stored("none").version == 0)
    }

    @Test("writes all of a batch or nothing", arguments: StoreFactory.all)
    func allOrNothing(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        try store.put(.running("a"), participants: [Participant(user: "ann", role: .viewer, joinedAt: .noon)])
        let kept = try store.commit(BatchCommit(outbox: [draft("a", 1)]))
        _ = try store.beginRun(RunRow(id: "r1", pid: 1, host: "h", startedAt: .noon))
        _ = try store.beginRun(RunRow(id: "r2", pid: 1, host: "h", startedAt: .noon))
        try store.markAttempts(["m"], run: "r2")

        var batch = BatchCommit(
            rooms: [
                RoomWrite(room: .running("new", minutes: 17), expectedVersion: 0, isChanged: true),
                RoomWrite(room: .running("a", sequence: 9), expectedVersion: 1, isChanged: true),
                RoomWrite(room: Room(id: "c"), expectedVersion: 7, isChanged: false),
            ],
            participants: [ParticipantWrite(room: "a", session: 1, change: .left("ann"))],
            answers: [answer("a", "c-1", session: 1)], outbox: [draft("a", 2)], published: kept,
            clearedAttempts: ["m"])
        #expect(throws: StoreError.conflict(["c"])) { try store.commit(batch) }
        // A refusal that comes last: the same key twice.
        batch.rooms.removeLast()
        batch.answers.append(answer("a", "c-1", session: 1))
        let refusal = #expect(throws: StoreError.self) { try store.commit(batch) }
        #expect(refusal?.isBatchFault == true)

        let state = try store.load(
            BatchRequest(
                rooms: ["new"], participants: [ParticipantKey(room: "a", user: "ann")],
                keys: [CommandKey(room: "a", id: "c-1")]))
        #expect(state.rooms["new"]?.version == 0)
        #expect(state.rooms["a"] == StoredRoom(room: .running("a"), version: 1))
        #expect(state.participants.count == 1)
        #expect(state.answers.isEmpty)
        #expect(try store.unpublished(after: 0, limit: 9).map(\.position) == kept)
        _ = try store.beginRun(RunRow(id: "r3", pid: 1, host: "h", startedAt: .noon))
        #expect(try store.mark(["m"], run: "r3") == ["m": 1])

        batch.answers.removeLast()
        let positions = try store.commit(batch)
        #expect(try store.unpublished(after: 0, limit: 9).map(\.position) == positions)
        #expect(try store.stored("new").room == .running("new", minutes: 17))
    }

    @Test("refuses a room named twice and a room that makes no sense", arguments: StoreFactory.all)
    func refusals(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let write = RoomWrite(room: .running("a"), expectedVersion: 0, isChanged: true)
        var senseless = Room.running("b")
        senseless.sessionNumber = 2
        let wrong = RoomWrite(room: senseless, expectedVersion: 0, isChanged: true)
        for writes in [[write, write], [write, wrong]] {
            let error = #expect(throws: StoreError.self) {
                try fixture.store.commit(BatchCommit(rooms: writes))
            }
            #expect(error?.isBatchFault == true)
            #expect(try fixture.store.stored("a").version == 0)
        }
    }
}
