import AMQP
import Contract
import RoomCore
import Testing

@Suite("Events on the wire")
struct EventEncoderTests {
    static let start = Instant(milliseconds: 1_795_954_800_000)
    static let end = start + .minutes(60)
    static let time = start + TimeSpan(milliseconds: 108_500)

    static let plain = Definition(
        duration: .minutes(60), moderators: nil,
        policy: Policy(
            windows: Policy.defaultWindows,
            extension: ExtensionBounds(min: .minutes(10), max: .minutes(30), default: .minutes(10)),
            extenders: .anyone, maxExtensions: nil, maxTotal: nil, clock: .firstJoin, reopen: .command))

    static let strict = Definition(
        duration: .seconds(90), moderators: ["ann", "b\"b"],
        policy: Policy(
            windows: [TimeSpan(milliseconds: 250)],
            extension: ExtensionBounds(min: .seconds(1), max: .seconds(2), default: .seconds(1)),
            extenders: .moderators, maxExtensions: 0, maxTotal: .minutes(2), clock: .firstModerator,
            reopen: .join))

    /// Kind, session, type, and everything in `data` behind `session`.
    static let golden: [(Event.Kind, Int64?, String, String)] = [
        (
            .roomOpened(plain), nil, "room.opened",
            #""audience":"room","duration":60,"policy":{"windows":[10,5],"extension":{"min":10,"max":30,"default":10},"#
                + #""extenders":"anyone","maxExtensions":null,"maxTotal":null,"clock":"first-join","#
                + #""reopen":"command"},"moderators":null"#
        ),
        (
            .roomOpened(strict), 2, "room.opened",
            #""audience":"room","duration":1.5,"policy":{"windows":[0.0042],"#
                + #""extension":{"min":0.0167,"max":0.0333,"default":0.0167},"extenders":"moderators","#
                + #""maxExtensions":0,"maxTotal":2,"clock":"first-moderator","reopen":"join"},"#
                + #""moderators":["ann","b\"b"]"#
        ),
        (
            .sessionStarted(
                startedAt: start, endsAt: end, duration: .minutes(60), nextDueAt: start + .minutes(50)), 1,
            "session.started",
            #""audience":"room","startedAt":"2026-11-29T12:20:00.000Z","endsAt":"2026-11-29T13:20:00.000Z","#
                + #""duration":60,"nextDueAt":"2026-11-29T13:10:00.000Z""#
        ),
        (
            .participantJoined(user: "é", role: .moderator, connected: 1), 1, "participant.joined",
            #""audience":"room","user":"é","role":"moderator","connected":1"#
        ),
        (
            .participantLeft(user: "u", role: .participant, connected: 0), 1, "participant.left",
            #""audience":"room","user":"u","role":"participant","connected":0"#
        ),
        (
            .participantRoleChanged(user: "u", role: .viewer, connected: 3), 1, "participant.role.changed",
            #""audience":"room","user":"u","role":"viewer","connected":3"#
        ),
        (
            .windowOpened(
                WindowNotice(
                    timeLeft: .seconds(299), window: 2, isFinal: true, isExtendable: false, extensions: 4,
                    endsAt: end, nextDueAt: end, dueAt: end - .minutes(5), lateBy: .seconds(1))), 1,
            "session.window.opened",
            #""audience":"room","timeLeft":4.9833,"window":2,"final":true,"extendable":false,"extensions":4,"#
                + #""endsAt":"2026-11-29T13:20:00.000Z","nextDueAt":"2026-11-29T13:20:00.000Z","#
                + #""dueAt":"2026-11-29T13:15:00.000Z","lateBy":1"#
        ),
        (
            .sessionExtended(
                ExtensionNotice(
                    granted: .minutes(10), by: .user("u"), previousEndsAt: end, endsAt: end + .minutes(10),
                    nextDueAt: end, extensions: 1)), 1, "session.extended",
            #""audience":"room","extendedTime":10,"by":"u","previousEndsAt":"2026-11-29T13:20:00.000Z","#
                + #""endsAt":"2026-11-29T13:30:00.000Z","nextDueAt":"2026-11-29T13:20:00.000Z","extensions":1"#
        ),
        (
            .sessionExtended(
                ExtensionNotice(
                    granted: .seconds(630), by: .operator("billing"), previousEndsAt: end, endsAt: end,
                    nextDueAt: end, extensions: 2)), 1, "session.extended",
            #""audience":"room","extendedTime":10.5,"by":null,"operator":"billing","#
                + #""previousEndsAt":"2026-11-29T13:20:00.000Z","endsAt":"2026-11-29T13:20:00.000Z","#
                + #""nextDueAt":"2026-11-29T13:20:00.000Z","extensions":2"#
        ),
        (
            .destroyAcknowledged(by: "m"), 1, "session.destroy.acknowledged",
            #""audience":"user:m","by":"m""#
        ),
        (
            .sessionEnded(
                EndNotice(
                    cause: .elapsed, by: nil, startedAt: start, endsAt: end,
                    endedAt: end + TimeSpan(milliseconds: 1_250), lateBy: TimeSpan(milliseconds: 1_250),
                    extensions: 0, participants: 5)), 1, "session.ended",
            #""audience":"room","cause":"elapsed","by":null,"startedAt":"2026-11-29T12:20:00.000Z","#
                + #""endsAt":"2026-11-29T13:20:00.000Z","endedAt":"2026-11-29T13:20:01.250Z","lateBy":1.25,"#
                + #""extensions":0,"participants":5"#
        ),
        (
            .sessionEnded(
                EndNotice(
                    cause: .destroyed, by: "m", startedAt: nil, endsAt: nil, endedAt: end, lateBy: .zero,
                    extensions: 0, participants: 1)), 1, "session.ended",
            #""audience":"room","cause":"destroyed","by":"m","startedAt":null,"endsAt":null,"#
                + #""endedAt":"2026-11-29T13:20:00.000Z","lateBy":0,"extensions":0,"participants":1"#
        ),
    ]

    @Test("each type has its bytes, to the letter", arguments: golden)
    func body(kind: Event.Kind, session: Int64?, type: String, data: String) {
        let event = Event(room: "demo", sequence: 7, session: session, time: Self.time, kind: kind)
        let encoded = EventEncoder.encode(event, source: "overtime")
        #expect(
            encoded.body.text
                == #"{"specversion":"1.0","id":"demo:7","source":"overtime","type":"\#(type)","subject":"demo","#
                + #""time":"2026-11-29T12:21:48.500Z","datacontenttype":"application/json","sequence":"7","#
                + #""data":{"room":"demo","session":\#(session.map(String.init) ?? "null"),\#(data)}}"#)
        #expect(encoded.type == type && encoded.id == "demo:7")
        #expect(EventEncoder.encode(event, source: "overtime") == encoded)
    }

    @Test("the table shows every type")
    func complete() {
        #expect(Set(Self.golden.map { $0.2 }) == Set(EventType.allCases.map(\.rawValue)))
    }

    @Test("the properties are those of the contract")
    func properties() {
        #expect(
            EventEncoder.properties(
                type: "session.destroy.acknowledged", id: "demo:7", room: "demo", sequence: 7,
                seconds: 1_795_954_908)
                == Properties(
                    contentType: "application/cloudevents+json",
                    headers: ["room": .text("demo"), "sequence": .int64(7)], deliveryMode: 2,
                    messageID: "demo:7", timestamp: 1_795_954_908, type: "session.destroy.acknowledged",
                    appID: "overtime"))
    }

    @Test("a trace stands in the header and, as CloudEvents names it, in the event")
    func trace() throws {
        let event = Event(
            room: "demo", sequence: 7, session: 1, time: Self.time, kind: .destroyAcknowledged(by: "m"))
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let trace = try #require(TraceParent(text))
        let encoded = EventEncoder.encode(event, source: "x", trace: trace)
        #expect(encoded.body.text.contains(#""sequence":"7","traceparent":"\#(text)","data":"#))
        let properties = EventEncoder.properties(
            type: encoded.type, id: encoded.id, room: "demo", sequence: 7, seconds: 0, trace: trace.text)
        #expect(properties.headers?["traceparent"] == .text(text))
    }

    @Test("the longest room and the highest number still fit the message's id")
    func longestID() {
        let room = RoomID(String(repeating: "é", count: 64))
        let event = Event(
            room: room, sequence: .max, session: 1, time: .earliest, kind: .destroyAcknowledged(by: "m"))
        let encoded = EventEncoder.encode(event, source: "overtime")
        let properties = EventEncoder.properties(
            type: encoded.type, id: encoded.id, room: room, sequence: .max,
            seconds: event.time.milliseconds / 1_000)
        #expect(properties.messageID?.string == encoded.id)
        #expect(properties.timestamp == 0)
    }

    @Test("strings are escaped where JSON asks for it, and parse back")
    func escaping() throws {
        let name = "\"\\/\u{8}\u{C}\u{1}\u{1F}\u{7F}\u{2028}é😀"
        let event = Event(
            room: RoomID(name), sequence: 1, session: 1, time: Self.time, kind: .destroyAcknowledged(by: "m"))
        let body = EventEncoder.encode(event, source: name).body
        #expect(body.text.contains(#""source":"\"\\/\b\f\u0001\u001f"# + "\u{7F}\u{2028}é😀\""))
        let parsed = try StrictJSON.parse(body).get()
        #expect(parsed["source"] == .string(name) && parsed["data"]?["room"] == .string(name))
    }

    @Test("a scheduler reads the events that move deadlines, and no others")
    func facts() {
        for (kind, session, type, _) in Self.golden {
            let event = Event(room: "demo", sequence: 7, session: session, time: Self.time, kind: kind)
            let fact = SessionFact.decode(EventEncoder.encode(event, source: "overtime").body)
            switch kind {
            case .sessionStarted(_, _, _, let due):
                #expect(fact == SessionFact(room: "demo", sequence: 7, due: .at(due)))
            case .windowOpened(let notice):
                #expect(fact == SessionFact(room: "demo", sequence: 7, due: .at(notice.nextDueAt)))
            case .sessionExtended(let notice):
                #expect(fact == SessionFact(room: "demo", sequence: 7, due: .at(notice.nextDueAt)))
            case .sessionEnded:
                #expect(fact == SessionFact(room: "demo", sequence: 7, due: .ended))
            default:
                #expect(fact == nil, "\(type)")
            }
        }
        for body in ["", "{}", "[]", #"{"type":"session.ended","sequence":"x","data":{"room":"r"}}"#] {
            #expect(SessionFact.decode(Array(body.utf8)) == nil)
        }
    }
}
