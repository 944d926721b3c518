import RoomCore
import Store
import Testing

extension StoreConformance {
    // MARK: Participants

    @Test("shows who is connected to the live session and nobody else", arguments: StoreFactory.all)
    func participants(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        let ann = Participant(user: "ann", role: .moderator, joinedAt: .noon)
        let ben = Participant(user: "ben", role: .viewer, joinedAt: .earliest)
        func found() throws -> [UserID: Participant] {
            let keys = ["ann", "ben", "eve"].map { ParticipantKey(room: "demo", user: UserID($0)) }
            let state = try store.load(BatchRequest(participants: keys))
            #expect(state.rooms["demo"] != nil)
            return Dictionary(uniqueKeysWithValues: state.participants.map { ($0.key.user, $0.value) })
        }
        try store.put(.running("demo", connected: 2), participants: [ann, ben])
        #expect(try found() == ["ann": ann, "ben": ben])
        #expect(try store.participants(of: "demo", session: 1, after: nil, limit: 9) == [ann, ben])

        let promoted = Participant(user: "ben", role: .participant, joinedAt: .earliest)
        try store.put(.running("demo", connected: 2), participants: [promoted])
        #expect(try found() == ["ann": ann, "ben": promoted])

        try store.put(Room.running("demo").ended(at: .noon(plus: 60)))
        #expect(try found().isEmpty)
        #expect(try store.participants(of: "demo", session: 1, after: nil, limit: 9).isEmpty)

        try store.put(.running("demo", session: 2), participants: [ben])
        #expect(try found() == ["ben": ben])
        #expect(try store.participants(of: "demo", session: 1, after: nil, limit: 9).isEmpty)
        #expect(try store.participants(of: "demo", session: 2, after: nil, limit: 9) == [ben])
    }

    @Test("applies a batch's joins and leaves in their order", arguments: StoreFactory.all)
    func participantOrder(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let ann = Participant(user: "ann", role: .viewer, joinedAt: .noon)
        let later = Participant(user: "ann", role: .moderator, joinedAt: .noon(plus: 1))
        func write(_ change: ParticipantChange, session: Int64 = 2) -> ParticipantWrite {
            ParticipantWrite(room: "demo", session: session, change: change)
        }
        _ = try fixture.store.commit(
            BatchCommit(
                rooms: [RoomWrite(room: .running("demo", session: 2), expectedVersion: 0, isChanged: true)],
                participants: [
                    write(.connected(ann), session: 1), write(.connected(ann)), write(.left("ann")),
                    write(.left("ann")), write(.connected(later)),
                ]))
        #expect(try fixture.store.participants(of: "demo", session: 2, after: nil, limit: 9) == [later])
    }

    @Test("pages through participants in byte order", arguments: StoreFactory.all)
    func participantPages(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let users = byteOrderedNames.map { Participant(user: UserID($0), role: .viewer, joinedAt: .noon) }
        try fixture.store.put(.running("demo", connected: Int64(users.count)), participants: users.shuffled())
        var found: [Participant] = []
        while true {
            let page = try fixture.store.participants(
                of: "demo", session: 1, after: found.last?.user, limit: 3)
            #expect(page.count <= 3)
            if page.isEmpty { break }
            found += page
        }
        #expect(found == users)
    }

    // MARK: Answers

    @Test("finds an answer by room and id, byte by byte", arguments: StoreFactory.all)
    func answers(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        let everyByte = (0...255).map { UInt8($0) }
        let positions = try store.commit(
            BatchCommit(
                answers: [
                    answer("a", "1", reply: everyByte), answer("a", "e\u{301}"), answer("b", "1", reply: []),
                ],
                outbox: [draft("a", 1), draft("a", 2), draft("c", 1)]))
        let keys = [
            CommandKey(room: "a", id: "1"), CommandKey(room: "b", id: "1"), CommandKey(room: "b", id: "2"),
            CommandKey(room: "a", id: "\u{E9}"), CommandKey(room: "c", id: "1"),
        ]
        let found = try store.load(BatchRequest(keys: keys)).answers
        #expect(
            found == [
                keys[0]: StoredAnswer(
                    canonical: Array("1".utf8), reply: everyByte, outboxPositionUpTo: positions[1]),
                keys[1]: StoredAnswer(canonical: Array("1".utf8), reply: [], outboxPositionUpTo: nil),
            ])
        let error = #expect(throws: StoreError.self) {
            try store.commit(BatchCommit(answers: [answer("a", "1")]))
        }
        #expect(error?.isBatchFault == true)
    }

    // MARK: Outbox

    @Test("gives messages ascending positions and never one twice", arguments: StoreFactory.all)
    func outbox(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        let drafts = (1...5).map {
            draft(
                RoomID("room \($0 % 2)"), $0, body: Array("body \($0)".utf8), trace: $0 == 2 ? "a trace" : nil
            )
        }
        let positions = try store.commit(BatchCommit(outbox: drafts))
        #expect(positions == positions.sorted() && Set(positions).count == 5)
        let all = try store.unpublished(after: 0, limit: 9)
        #expect(all == zip(positions, drafts).map { OutboxMessage(position: $0, draft: $1) })
        #expect(try store.unpublished(after: positions[1], limit: 2) == Array(all[2...3]))

        try store.markPublished([positions[3], positions[0], positions[3], 999_999])
        let left = [positions[1], positions[2], positions[4]]
        #expect(try store.unpublished(after: 0, limit: 9).map(\.position) == left)
        let next = try store.commit(BatchCommit(outbox: [draft("x", 1, body: [])], published: left))
        #expect(try store.unpublished(after: 0, limit: 9).map(\.position) == next)
        try store.markPublished(next)
        try store.markPublished([])
        #expect(try store.unpublished(after: 0, limit: 9).isEmpty)
        let last = try store.commit(BatchCommit(outbox: [draft("x", 2)]))
        #expect(try #require(last.first) > #require(next.first))
    }

    @Test("counts live rooms and waiting messages", arguments: StoreFactory.all)
    func statistics(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        #expect(try store.statistics().liveRooms == 0)
        try store.put(.running("a"))
        try store.put(.running("b"))
        let positions = try store.commit(BatchCommit(outbox: [draft("a", 1), draft("a", 2)]))
        var found = try store.statistics()
        #expect((found.liveRooms, found.outboxDepth) == (2, 2))
        #expect(found.oldestOutboxAt == Instant(milliseconds: draft("a", 1).timestamp * 1_000))
        try store.put(Room.running("a").ended(at: .noon))
        try store.markPublished([positions[0], positions[0]])
        #expect(throws: StoreError.self) {
            try store.commit(
                BatchCommit(rooms: [RoomWrite(room: .running("c"), expectedVersion: 3, isChanged: true)]))
        }
        found = try store.statistics()
        #expect((found.liveRooms, found.outboxDepth) == (1, 1))
        #expect(found.schemaVersion > 0 && found.databaseBytes > 0)
    }

    // MARK: Pages

    @Test("pages through live rooms in byte order", arguments: StoreFactory.all)
    func livePages(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        var waiting = Room.running("zz waiting")
        waiting.session?.phase = .waiting
        for name in byteOrderedNames.shuffled() { try fixture.store.put(.running(RoomID(name))) }
        try fixture.store.put(waiting)
        try fixture.store.put(Room.running("ended").ended(at: .noon))
        try fixture.store.put(Room(id: "opened", definition: .sample(), sequence: 1, isOpen: true))
        var found: [Room] = []
        while true {
            let page = try fixture.store.liveRooms(after: found.last?.id, limit: 4)
            if page.isEmpty { break }
            found += page
        }
        let expected = (byteOrderedNames + ["zz waiting"]).map { RoomID($0) }.sorted()
        #expect(found.map(\.id) == expected)
        #expect(found.contains(waiting))
    }

    @Test("pages through overdue rooms by id, a bounded number looked at a call", arguments: StoreFactory.all)
    func overduePages(_ factory: StoreFactory) throws {
        let fixture = try factory.make()
        let store = fixture.store
        var expected: [RoomID] = []
        for start in [Int64(-3), -2, -1] {
            for name in byteOrderedNames {
                let room = Room.running(RoomID("\(name) \(start)"), start: .noon(plus: start))
                try store.put(room)
                expected.append(room.id)
            }
        }
        try store.put(.running("due in a millisecond", start: .noon + TimeSpan(milliseconds: 1)))
        try store.put(.running("due now"))
        try store.put(Room.running("ended", start: .noon(plus: -90)).ended(at: .noon))
        expected.append("due now")
        expected.sort()

        var found: [RoomID] = []
        var calls = 0
        var last: RoomID?
        repeat {
            let page = try store.overdue(at: .noon(plus: 50), after: last, limit: 5)
            #expect(page.rooms.count <= 5)
            found += page.rooms
            last = page.next
            calls += 1
        } while last != nil
        #expect(found == expected)
        // Those that ended or are not due yet may be looked at too.
        #expect(calls <= (expected.count + 2) / 5 + 1)
        // What was brought up to date leaves the page.
        try store.put(Room.running("due now").ended(at: .noon(plus: 60)))
        #expect(
            try store.overdue(at: .noon(plus: 50), after: nil, limit: 99).rooms.count == expected.count - 1)
    }
}

/// Names whose byte order differs from that of characters, UTF-16 units or locales.
let byteOrderedNames = [
    "", " ", "A", "B", "a", "a\u{0}", "a\u{0}b", "aa", "b", "e\u{301}", "é", "日", "\u{E000}", "\u{FFFD}", "😀",
]
