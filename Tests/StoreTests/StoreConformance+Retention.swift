import RoomCore
import Store
import Testing

extension StoreConformance {
    private func prune(
        _ store: any RoomStore, at now: Instant, limit: Int = 1_000
    ) throws -> PruneCount {
        try store.prune(
            Retention(now: now, idsFor: .minutes(24 * 60), roomsFor: .minutes(30 * 24 * 60)), limit: limit)
    }

    private func known(_ store: any RoomStore, _ room: RoomID, _ id: CommandID) throws -> Bool {
        try !store.load(BatchRequest(keys: [CommandKey(room: room, id: id)])).answers.isEmpty
    }

    @Test("keeps an answer for its time and until its session is over", arguments: StoreFactory.all)
    func answerRetention(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        try store.put(.running("live", session: 2))
        try store.put(Room.running("over", session: 2).ended(at: .noon))
        _ = try store.commit(
            BatchCommit(answers: [
                answer("live", "current", session: 2), answer("live", "former", session: 1),
                answer("over", "c", session: 2), answer("unknown", "c"),
                answer("unknown", "later", at: .noon + TimeSpan(milliseconds: 1)),
            ]))
        let day = Instant.noon(plus: 24 * 60)
        #expect(try prune(store, at: day) == PruneCount())
        #expect(try prune(store, at: day + TimeSpan(milliseconds: 1)) == PruneCount(answers: 3))
        #expect(try known(store, "live", "current"))
        #expect(try !known(store, "live", "former"))
        #expect(try !known(store, "over", "c"))
        #expect(try !known(store, "unknown", "c"))
        #expect(try known(store, "unknown", "later"))

        try store.put(Room.running("live", session: 2).ended(at: day))
        #expect(try prune(store, at: .noon(plus: 24 * 60 + 1)) == PruneCount(answers: 2))
        #expect(try !known(store, "live", "current"))
    }

    @Test(
        "looks at a bounded number of answers a call, and at all of them in time", arguments: StoreFactory.all
    )
    func boundedAnswers(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        try store.put(.running("live", session: 2))
        _ = try store.commit(
            BatchCommit(
                answers: (0..<25).map { answer("live", CommandID("kept \($0)"), session: 2) }
                    + (0..<12).map { answer("gone", CommandID("\($0)"), at: .noon(plus: 1)) }))
        var removed = 0
        for call in 1...4 {
            let count = try prune(store, at: .noon(plus: 3_000), limit: 10)
            #expect(count.isUnfinished == (call < 4))
            removed += count.answers
        }
        #expect(removed == 12)
        #expect(try known(store, "live", "kept 24"))
    }

    @Test("removes participants of finished sessions in pieces", arguments: StoreFactory.all)
    func participantRetention(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        let users = (0..<25).map { Participant(user: UserID("\($0)"), role: .viewer, joinedAt: .noon) }
        try store.put(.running("demo", connected: 25), participants: users)
        #expect(try prune(store, at: .noon) == PruneCount())
        try store.put(Room.running("demo").ended(at: .noon))
        try store.put(.running("demo", session: 2, connected: 3), participants: Array(users[..<3]))
        #expect(try prune(store, at: .noon, limit: 10) == PruneCount(participants: 10, isUnfinished: true))
        #expect(try prune(store, at: .noon, limit: 10) == PruneCount(participants: 10, isUnfinished: true))
        #expect(try prune(store, at: .noon, limit: 10) == PruneCount(participants: 5))
        #expect(try prune(store, at: .noon, limit: 10) == PruneCount())
        #expect(try store.participants(of: "demo", session: 2, after: nil, limit: 9).count == 3)
    }

    @Test("removes participants of sessions that came and went within a batch", arguments: StoreFactory.all)
    func participantsOfShortSessions(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let ann = ParticipantChange.connected(Participant(user: "ann", role: .viewer, joinedAt: .noon))
        for first in [Int64(1), 3] {
            _ = try fixture.store.commit(
                BatchCommit(
                    rooms: [
                        RoomWrite(
                            room: Room.running("demo", session: first + 1).ended(at: .noon),
                            expectedVersion: first / 2, isChanged: true)
                    ],
                    participants: [first, first + 1].map {
                        ParticipantWrite(room: "demo", session: $0, change: ann)
                    }))
            #expect(try prune(fixture.store, at: .noon) == PruneCount(participants: 2))
        }
    }

    @Test("forgets an ended room after its time but never its numbers", arguments: StoreFactory.all)
    func roomRetention(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        try store.put(.running("live", session: 4))
        let ended = Room.running("ended", session: 4, sequence: 40).ended(at: .noon)
        try store.put(ended)
        try store.put(Room.running("opened again").ended(at: .noon, isOpen: true))
        try store.put(Room(id: "never used", definition: .sample(), sequence: 1, isOpen: true))
        let month = Instant.noon(plus: 30 * 24 * 60)
        #expect(try prune(store, at: month).rooms == 0)
        #expect(try prune(store, at: month + TimeSpan(milliseconds: 1)).rooms == 1)
        #expect(try prune(store, at: .latest).rooms == 0)
        #expect(
            try store.stored("ended")
                == StoredRoom(room: Room(id: "ended", sequence: 41, sessionNumber: 4), version: 2))
        for kept in ["live", "opened again", "never used"] as [RoomID] {
            #expect(try store.stored(kept).room.definition != nil)
        }
        // Who holds the room as it was before finds out.
        #expect(throws: StoreError.conflict(["ended"])) {
            try store.commit(
                BatchCommit(rooms: [RoomWrite(room: ended, expectedVersion: 1, isChanged: false)]))
        }
        let next = Room.running("ended", session: 5, sequence: 44)
        try store.put(next, participants: [Participant(user: "ann", role: .viewer, joinedAt: .noon)])
        #expect(try store.stored("ended") == StoredRoom(room: next, version: 3))
        #expect(try store.participants(of: "ended", session: 5, after: nil, limit: 9).count == 1)
    }

    @Test("forgets many rooms in pieces", arguments: StoreFactory.all)
    func boundedRooms(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        for number in 0..<25 {
            try fixture.store.put(
                Room.running(RoomID("\(number)")).ended(at: .noon(plus: Int64(number))))
        }
        let counts = try (0..<3).map { _ in try prune(fixture.store, at: .latest, limit: 10).rooms }
        #expect(counts == [10, 10, 5])
    }

    // MARK: Runs and attempts

    @Test("counts attempts of crashed runs only", arguments: StoreFactory.all)
    func attempts(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        func run(_ id: String, _ minute: Int64) -> RunRow {
            RunRow(id: id, pid: 7, host: "h", startedAt: .noon(plus: minute))
        }
        #expect(try store.beginRun(run("one", 1)).isEmpty)
        #expect(try store.mark(["poison", "neighbour"], run: "one").isEmpty)
        #expect(try store.mark(["poison"], run: "one").isEmpty)
        #expect(try store.beginRun(run("two", 2)) == ["one"])
        #expect(try store.beginRun(run("two", 2)) == ["one"])
        #expect(try store.mark(["poison", "fresh"], run: "two") == ["poison": 1])
        #expect(try store.beginRun(run("three", 3)) == ["one", "two"])
        #expect(try store.mark(["poison"], run: "three") == ["poison": 2])
        _ = try store.commit(BatchCommit(clearedAttempts: ["fresh", "unknown"]))
        try store.endRun("three")
        // A clean end takes its marks along; the crashed ones stay for as long as marks name them.
        #expect(try store.beginRun(run("four", 4)) == ["one", "two"])
        #expect(
            try store.mark(["poison", "fresh", "neighbour"], run: "four") == [
                "poison": 2, "neighbour": 1,
            ])
        _ = try store.commit(BatchCommit(clearedAttempts: ["poison", "neighbour", "fresh"]))
        try store.endRun("four")
        #expect(try store.beginRun(run("five", 5)).isEmpty)
        #expect(try store.mark(["poison"], run: "five").isEmpty)
    }

    @Test("reports a crashed run that marked nothing once", arguments: StoreFactory.all)
    func crashWithoutMarks(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        _ = try store.beginRun(RunRow(id: "one", pid: 7, host: "h", startedAt: .noon))
        #expect(try store.beginRun(RunRow(id: "two", pid: 7, host: "h", startedAt: .noon)) == ["one"])
        try store.endRun("two")
        #expect(try store.beginRun(RunRow(id: "three", pid: 7, host: "h", startedAt: .noon)).isEmpty)
    }

    @Test("forgets marks of crashed runs as it forgets ids", arguments: StoreFactory.all)
    func attemptRetention(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        _ = try store.beginRun(RunRow(id: "one", pid: 7, host: "h", startedAt: .noon(plus: -9)))
        try store.markAttempts(["m"], run: "one")
        _ = try store.beginRun(RunRow(id: "two", pid: 7, host: "h", startedAt: .noon))
        #expect(try prune(store, at: .noon(plus: 24 * 60)) == PruneCount())
        #expect(try prune(store, at: .noon(plus: 24 * 60 + 1)) == PruneCount(runs: 1))
        #expect(try store.mark(["m"], run: "two").isEmpty)
    }

    // MARK: Life

    @Test("probes with a real write and refuses everything once closed", arguments: StoreFactory.all)
    func closing(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        try fixture.store.check()
        fixture.store.close()
        #expect(throws: StoreError.closed) { try fixture.store.check() }
        #expect(throws: StoreError.closed) { try fixture.store.load(BatchRequest(rooms: ["a"])) }
        #expect(throws: StoreError.closed) { try fixture.store.commit(BatchCommit()) }
        fixture.store.close()
    }
}

extension RoomStore {
    /// Counts the crashes of messages and marks them, as a worker does.
    func mark(_ keys: [AttemptKey], run: String) throws(StoreError) -> [AttemptKey: Int] {
        let counts = try crashes(of: keys)
        try markAttempts(keys, run: run)
        return counts
    }
}
