import Contract
import RoomCore
import Testing

@Suite("Ticks")
struct TickTests {
    static let now = EventEncoderTests.start

    @Test("a tick has its bytes and reads back")
    func roundTrip() {
        let tick = Tick(scheduler: "s1", rooms: ["a", "b\"c", "é"])
        #expect(tick.encode().text == #"{"scheduler":"s1","rooms":["a","b\"c","é"]}"#)
        #expect(Tick.decode(tick.encode()) == tick)
    }

    @Test(
        "no tick is larger than the bounds, and none loses a room", arguments: [0, 1, 499, 500, 501, 1_250])
    func split(count: Int) {
        let short = (0..<count).map { RoomID("r\($0)") }
        let long = (0..<count).map { RoomID(String(repeating: "\"", count: 124) + String(1_000 + $0)) }
        for rooms in [short, long] {
            let ticks = Tick.split(scheduler: "s\"1", rooms: rooms)
            #expect(ticks.flatMap(\.rooms) == rooms)
            for tick in ticks {
                #expect(tick.rooms.count <= 500 && tick.encode().count <= 65_536)
                #expect(Tick.decode(tick.encode()) == tick)
            }
        }
        #expect(Tick.split(scheduler: "s", rooms: short).count == (count + 499) / 500)
    }

    @Test(
        "what no scheduler sends is no tick",
        arguments: [
            "", "[]", "{}", #"{"scheduler":"s"}"#, #"{"rooms":[]}"#, #"{"scheduler":1,"rooms":[]}"#,
            #"{"scheduler":"s","rooms":[1]}"#, #"{"scheduler":"s","rooms":[""]}"#,
            #"{"scheduler":"s","rooms":["\n"]}"#,
        ])
    func noTicks(text: String) {
        #expect(Tick.decode(Array(text.utf8)) == nil)
    }

    @Test("more rooms than the bound are no tick")
    func tooMany() {
        let rooms = [RoomID](repeating: "r", count: 501)
        #expect(Tick.decode(Tick(scheduler: "s", rooms: rooms).encode()) == nil)
    }

    @Test("an answer has its bytes and reads back")
    func answers() {
        let answer = TickAnswer(
            serverTime: Self.now,
            rooms: [
                .init(room: "a", nextDueAt: Self.now, sequence: 4),
                .init(room: "b", nextDueAt: nil, sequence: 0),
            ])
        #expect(
            answer.encode().text
                == #"{"serverTime":"2026-11-29T12:20:00.000Z","idle":[{"room":"a","#
                + #""nextDueAt":"2026-11-29T12:20:00.000Z","sequence":4},{"room":"b","nextDueAt":null,"sequence":0}]}"#
        )
        #expect(TickAnswer.decode(answer.encode()) == answer)
        #expect(TickAnswer.decode(Array("{}".utf8)) == nil)
        let full = TickAnswer(
            serverTime: Self.now,
            rooms: (0..<500).map {
                .init(
                    room: RoomID(String(repeating: "x", count: 120) + "\($0)"), nextDueAt: Self.now,
                    sequence: .max)
            })
        #expect(TickAnswer.decode(full.encode()) == full)
    }
}
