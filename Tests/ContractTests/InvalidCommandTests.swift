import AMQP
import Contract
import RoomCore
import Testing

@Suite("Invalid commands")
struct InvalidCommandTests {
    @Test(
        "an envelope that is wrong is refused, and the sentence names what",
        arguments: WrongCommands.envelopes)
    func envelope(body: String, fragment: String) throws {
        let found = try #require(invalid(body))
        #expect(found.detail.contains(fragment), "\(found.detail)")
    }

    @Test(
        "an argument that is wrong is refused, and the sentence names it", arguments: WrongCommands.arguments)
    func argument(body: String, fragment: String) throws {
        let found = try #require(invalid(body))
        #expect(found.detail.contains(fragment), "\(found.detail)")
        #expect(found.detail.utf8.count <= 512)
    }

    @Test("the table is long enough to be worth its name")
    func tableSize() { #expect(WrongCommands.envelopes.count + WrongCommands.arguments.count >= 100) }

    @Test(
        "properties that say it is something else are refused",
        arguments: [
            (Properties(contentEncoding: "gzip"), "content_encoding \"gzip\" is not supported"),
            (Properties(contentEncoding: "identity"), "content_encoding \"identity\""),
            (Properties(contentType: "text/plain"), "content_type \"text/plain\" is not supported"),
            (Properties(contentType: "application/json+x"), "content_type"),
            (Properties(contentType: "application/cloudevents+json"), "content_type"),
            (Properties(contentType: "application / json"), "content_type"),
            (Properties(contentType: ";charset=utf-8"), "content_type"),
            (Properties(contentType: ShortString(bytes: [0xFF, 0x0A])), "content_type"),
        ])
    func format(properties: Properties, fragment: String) throws {
        let found = try #require(invalid(#"{"command":"status","room":"r","id":"k"}"#, properties))
        #expect(found.detail.contains(fragment), "\(found.detail)")
        #expect(!found.detail.unicodeScalars.contains { $0.value < 0x20 })
        #expect(found.id == "k" && found.command == .status && found.room == "r")
    }

    @Test(
        "a message_id that is no key is refused where it would be the key",
        arguments: [
            (ShortString(String(repeating: "k", count: 129)), "1 to 128 bytes of UTF-8, not 129"),
            (ShortString(bytes: [0xFF]), "must be valid UTF-8"),
            (ShortString(bytes: [0x61, 0]), "must not contain NUL"),
        ] as [(ShortString?, String)])
    func messageID(id: ShortString?, fragment: String) throws {
        let properties = Properties(messageID: id)
        let found = try #require(invalid(#"{"command":"status","room":"r"}"#, properties))
        #expect(found.detail.contains("message_id") && found.detail.contains(fragment), "\(found.detail)")
        #expect(found.id == nil)
        #expect(try decode(#"{"command":"status","room":"r","id":"k"}"#, properties).get().id == "k")
    }

    @Test(
        "the word for the dead letter says what kind of mistake it is",
        arguments: [
            ("x", "not_json"), ("", "not_json"), ("[]", "not_an_object"), ("{}", "invalid_command"),
            (String(repeating: " ", count: 65_537), "too_large"),
        ])
    func words(body: String, word: String) {
        #expect(invalid(body)?.reasonWord == word)
    }

    @Test(
        "what is valid by itself is echoed",
        arguments: [
            (#"{"command":"join","room":"r","id":"k"}"#, "k", CommandKind.join, "r"),
            (#"{"command":"jion","room":"r","id":"k"}"#, "k", nil, "r"),
            (#"{"command":"join","room":"","id":"k"}"#, "k", .join, nil),
            (#"{"command":"join","room":"r","id":9}"#, nil, .join, "r"),
            (#"{"command":"status","room":"r","id":"k","x":1}"#, "k", .status, "r"),
            (#"{"room":"r","x":1}"#, nil, nil, "r"),
            ("[1]", nil, nil, nil),
        ] as [(String, CommandID?, CommandKind?, RoomID?)])
    func echo(body: String, id: CommandID?, command: CommandKind?, room: RoomID?) throws {
        let found = try #require(invalid(body))
        #expect(found.id == id && found.command == command && found.room == room)
    }

    @Test("where the body says nothing, the properties are echoed")
    func echoedProperties() throws {
        let found = try #require(invalid("oops", Properties(messageID: "m", type: "join")))
        #expect(found.id == "m" && found.command == .join && found.room == nil)
    }

    @Test("a detail stays short, whatever was sent")
    func bounded() throws {
        let name = String(repeating: "x", count: 60_000)
        let found = try #require(invalid(#"{"command":"status","room":"r","\#(name)":1}"#))
        #expect(found.detail.utf8.count < 200)
    }
}
