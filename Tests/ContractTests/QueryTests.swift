import Contract
import RoomCore
import Testing

@Suite("Queries")
struct QueryTests {
    static let now = EventEncoderTests.start

    @Test(
        "a question decodes, and encodes to one that decodes the same",
        arguments: [
            (#"{"query":"rooms"}"#, .rooms(after: nil, limit: 500)),
            (#"{"query":"rooms","after":null,"limit":500}"#, .rooms(after: nil, limit: 500)),
            (#"{"query":"rooms","after":"a","limit":1}"#, .rooms(after: "a", limit: 1)),
            (#"{"query":"participants","room":"demo"}"#, .participants(room: "demo", after: nil, limit: 500)),
            (
                #"{"query":"participants","room":"demo","after":"u","limit":1000}"#,
                .participants(room: "demo", after: "u", limit: 1_000)
            ),
            (#"{"query":"state"}"#, .state),
        ] as [(String, Query)])
    func decodes(text: String, query: Query) {
        #expect(QueryDecoder.decode(Array(text.utf8)) == .success(query))
        #expect(QueryDecoder.decode(QueryEncoder.encode(query)) == .success(query))
    }

    @Test(
        "a malformed question is refused, and the sentence names what",
        arguments: [
            ("", "empty"), ("x", "not valid JSON"), ("[]", "one JSON object"), ("{}", "query is missing"),
            (#"{"query":"room"}"#, "did you mean \"rooms\""), (#"{"query":null}"#, "query must be a string"),
            (#"{"query":"rooms","limit":0}"#, "between 1 and 1000, not 0"),
            (#"{"query":"rooms","limit":1001}"#, "between 1 and 1000, not 1001"),
            (#"{"query":"rooms","limit":-1}"#, "limit must be a whole number"),
            (#"{"query":"rooms","limit":1.0}"#, "limit must be a whole number"),
            (#"{"query":"rooms","limit":null}"#, "limit must be a whole number"),
            (#"{"query":"rooms","limit":"5"}"#, "limit must be a whole number"),
            (#"{"query":"rooms","after":5}"#, "after must be a string"),
            (#"{"query":"rooms","after":""}"#, "after must have 1 to 128 bytes"),
            (#"{"query":"rooms","room":"r"}"#, "\"room\" is not a field of the query rooms"),
            (#"{"query":"rooms","limits":1}"#, "did you mean \"limit\"?"),
            (#"{"query":"participants"}"#, "room is missing"),
            (#"{"query":"participants","room":""}"#, "room must have 1 to 128 bytes"),
            (#"{"query":"state","limit":1}"#, "\"limit\" is not a field of the query state"),
        ])
    func malformed(text: String, fragment: String) {
        guard case .failure(let problem) = QueryDecoder.decode(Array(text.utf8)) else {
            Issue.record("\(text) was taken for a query")
            return
        }
        #expect(problem.detail.contains(fragment), "\(problem.detail)")
        let answer = QueryReplyEncoder.malformed(problem, serverTime: Self.now)
        #expect(
            answer.text.hasPrefix(#"{"ok":false,"error":{"code":6008,"reason":"invalid_command","message":"#))
    }

    static let rooms = [
        LiveRoom(
            room: "demo", session: 2, state: .running, startedAt: now, endsAt: now + .minutes(60),
            nextDueAt: now + .minutes(50), connected: 3, extensions: 1, sequence: 9),
        LiveRoom(
            room: "é", session: 1, state: .waiting, startedAt: nil, endsAt: nil, nextDueAt: nil, connected: 1,
            extensions: 0, sequence: 2),
    ]

    @Test("a page of rooms has its bytes and reads back")
    func roomPage() throws {
        let bytes = QueryReplyEncoder.rooms(Self.rooms, next: "é", serverTime: Self.now)
        #expect(
            bytes.text
                == #"{"ok":true,"rooms":[{"room":"demo","session":2,"state":"running","#
                + #""startedAt":"2026-11-29T12:20:00.000Z","endsAt":"2026-11-29T13:20:00.000Z","#
                + #""nextDueAt":"2026-11-29T13:10:00.000Z","connected":3,"extensions":1,"sequence":9},"#
                + #"{"room":"é","session":1,"state":"waiting","startedAt":null,"endsAt":null,"nextDueAt":null,"#
                + #""connected":1,"extensions":0,"sequence":2}],"next":"é","serverTime":"2026-11-29T12:20:00.000Z"}"#
        )
        let page = try QueryReplyDecoder.rooms(bytes).get()
        #expect(page.rows == Self.rooms && page.next == "é" && page.serverTime == Self.now)
    }

    @Test("a page of participants has its bytes and reads back")
    func participantPage() throws {
        let people = [
            Participant(user: "a", role: .moderator, joinedAt: Self.now),
            Participant(user: "b\"", role: .viewer, joinedAt: Self.now),
        ]
        let bytes = QueryReplyEncoder.participants(people, next: nil, serverTime: Self.now)
        #expect(
            bytes.text
                == #"{"ok":true,"participants":[{"user":"a","role":"moderator","joinedAt":"2026-11-29T12:20:00.000Z"},"#
                + #"{"user":"b\"","role":"viewer","joinedAt":"2026-11-29T12:20:00.000Z"}],"next":null,"#
                + #""serverTime":"2026-11-29T12:20:00.000Z"}"#)
        let page = try QueryReplyDecoder.participants(bytes).get()
        #expect(page.rows == people && page.next == nil)
    }

    @Test("the largest page is read, though a command may not be that large")
    func largePage() throws {
        let rooms = (0..<1_000).map { number in
            LiveRoom(
                room: RoomID(String(repeating: "\"", count: 124) + String(1_000 + number)), session: .max,
                state: .running, startedAt: Self.now, endsAt: Self.now, nextDueAt: Self.now, connected: .max,
                extensions: .max, sequence: .max)
        }
        let bytes = QueryReplyEncoder.rooms(rooms, next: nil, serverTime: Self.now)
        #expect(bytes.count > 65_536)
        #expect(try QueryReplyDecoder.rooms(bytes).get().rows == rooms)
    }

    @Test("a refusal and a stranger's bytes are told apart")
    func problems() {
        let unknown = QueryReplyEncoder.unknownRoom("demo", serverTime: Self.now)
        #expect(unknown.text.hasPrefix(#"{"ok":false,"error":{"code":6002,"reason":"unknown_room","#))
        #expect(unknown.text.hasSuffix(#","serverTime":"2026-11-29T12:20:00.000Z"}"#))
        guard case .failure(.refused(let failure)) = QueryReplyDecoder.participants(unknown) else {
            Issue.record("not refused")
            return
        }
        #expect(failure.code == 6_002)
        for text in ["", "[]", "{}", #"{"ok":true}"#, #"{"ok":true,"rooms":[{}],"serverTime":"x"}"#] {
            guard case .failure(.unreadable) = QueryReplyDecoder.rooms(Array(text.utf8)) else {
                Issue.record("\(text) was read")
                continue
            }
        }
    }

    @Test("a state names every worker of the store, and one without a readable member is none of ours")
    func members() throws {
        let members = [
            WorkerState.Member(run: "a", host: "h", pid: 1, shards: [0, 2], clockOffset: -1_500),
            WorkerState.Member(run: "b", host: "g", pid: 2, shards: [], clockOffset: 0),
        ]
        let state = WorkerState(entries: [], members: members, serverTime: Self.now)
        #expect(WorkerState.decode(state.encode()) == state)
        let many = WorkerState(
            entries: [], members: Array(repeating: members[0], count: 2_000), serverTime: Self.now)
        #expect(WorkerState.decode(many.encode()) == many)
        let bad = #"{"ok":true,"state":[],"members":[{"run":"a"}],"serverTime":"2026-11-29T12:20:00.000Z"}"#
        #expect(WorkerState.decode(Array(bad.utf8)) == nil)
    }

    @Test("a worker's state keeps its order")
    func state() {
        let state = WorkerState(
            entries: [.init("worker", "w1"), .init("store", "sqlite:\"x\""), .init("clock", "1")],
            serverTime: Self.now)
        #expect(WorkerState.decode(state.encode()) == state)
        #expect(state["store"] == "sqlite:\"x\"" && state["none"] == nil)
        #expect(WorkerState.decode(Array("{}".utf8)) == nil)
    }
}
