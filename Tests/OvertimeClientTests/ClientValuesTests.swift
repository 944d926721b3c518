import Foundation
import RoomCore
import Testing

@testable import OvertimeClient

struct ClientValuesTests {
    private func decode(_ type: String, _ data: String, room: String = "demo", sequence: String = "7")
        -> Overtime.Event?
    {
        let body = """
            {"specversion":"1.0","id":"\(room):\(sequence)","source":"overtime","type":"\(type)","subject":"\(room)",
             "time":"2026-11-29T12:21:48.250Z","datacontenttype":"application/json","sequence":"\(sequence)",
             "data":{"room":"\(room)","session":2,"audience":"room",\(data)}}
            """
        return Overtime.Event(body: Array(body.utf8), position: 12)
    }

    @Test("an event is read with all its parts")
    func event() throws {
        let event = try #require(
            decode(
                "session.extended",
                #""extendedTime":10.5,"by":"alice","previousEndsAt":"2026-11-29T12:30:00.000Z","endsAt":"2026-11-29T12:40:30.000Z","nextDueAt":"2026-11-29T12:30:30.000Z","extensions":1"#
            ))
        #expect(event.id == "demo:7" && event.room == "demo" && event.sequence == 7 && event.session == 2)
        #expect(event.audience == .room && event.position == 12 && event.type == "session.extended")
        #expect(event.time == Date(timeIntervalSince1970: 1_795_954_908.25))
        guard case .sessionExtended(let extended) = event.content else {
            Issue.record("\(event.content)")
            return
        }
        #expect(
            extended.extendedTime == .seconds(630) && extended.by == .user("alice")
                && extended.extensions == 1)
        #expect(extended.endsAt.timeIntervalSince(extended.previousEndsAt) == 630)
    }

    @Test("an operator's extension names the operator")
    func operatorExtends() throws {
        let event = try #require(
            decode(
                "session.extended",
                #""extendedTime":10,"by":null,"operator":"desk","previousEndsAt":"2026-11-29T12:30:00.000Z","endsAt":"2026-11-29T12:40:00.000Z","nextDueAt":"2026-11-29T12:30:00.000Z","extensions":1"#
            ))
        guard case .sessionExtended(let extended) = event.content else {
            Issue.record("\(event.content)")
            return
        }
        #expect(extended.by == .operator("desk"))
    }

    @Test(
        "what a newer worker may say is still an event",
        arguments: [("room.painted", #""x":1"#), ("session.ended", #""x":1"#)])
    func unknown(_ type: String, _ data: String) throws {
        let event = try #require(decode(type, data))
        #expect(event.content == .other && event.type == type && event.sequence == 7)
    }

    @Test("anything else is none", arguments: ["", "{}", "[]", #"{"id":"demo:7"}"#])
    func noEvent(_ text: String) {
        #expect(Overtime.Event(body: Array(text.utf8), position: nil) == nil)
    }

    @Test("a configuration shows its password nowhere")
    func password() throws {
        let configuration = try Overtime.Configuration(url: "amqp://alice:canary@127.0.0.1:5672/%2f")
        #expect(
            !"\(configuration)".contains("canary") && !String(reflecting: configuration).contains("canary"))
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("canary"))
        let error = #expect(throws: OvertimeError.self) {
            try Overtime.Configuration(url: "amqp://alice:canary@127.0.0.1:no/%2f")
        }
        #expect(error.map { !"\($0)".contains("canary") } == true)
    }

    @Test("durations reach the wire to the millisecond, half of one rounded up")
    func durations() {
        let definition = Overtime.Definition(
            duration: .seconds(90) + .microseconds(500), moderators: ["alice"],
            policy: .init(windows: [.seconds(60), .milliseconds(250)], extension: .init(min: .seconds(60))))
        let request = OpenRequest(definition)
        #expect(request.duration?.milliseconds == 90_001)
        #expect(request.policy?.windows?.map(\.milliseconds) == [60_000, 250])
        #expect(
            request.policy?.extension?.min?.milliseconds == 60_000 && request.policy?.extension?.max == nil)
    }
}
