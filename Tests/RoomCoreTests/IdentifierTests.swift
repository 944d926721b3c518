import RoomCore
import Testing

@Suite("Identifiers are equal byte by byte")
struct IdentifierTests {
    /// One letter to a reader and to Swift's strings, two spellings in bytes.
    static let composed: UserID = "caf\u{E9}"
    static let decomposed: UserID = "cafe\u{301}"

    @Test("Two spellings of one letter are two identifiers, also in sets and dictionaries")
    func spellings() {
        #expect(Self.composed.text == Self.decomposed.text)
        #expect(Self.composed != Self.decomposed)
        #expect(Set([Self.composed, Self.decomposed, "caf\u{E9}"]).count == 2)
        #expect([Self.composed: 1, Self.decomposed: 2][Self.decomposed] == 2)
    }

    @Test("What is equal byte by byte is equal, however the string is stored")
    func storage() {
        let long = String(repeating: "a", count: 100)
        let slice = UserID(String(("x" + long).dropFirst()))
        #expect(slice == UserID(long))
        #expect(Set([slice, UserID(long)]).count == 1)
        #expect(UserID("a") != UserID("A"))
        #expect(UserID("a") != UserID("a "))
        #expect(UserID("") != UserID("\0"))
    }

    @Test("They sort by bytes, as a database and a broker do")
    func order() {
        let sorted: [UserID] = [
            "", "A", "Z", "a", "aa", "b", "cafe\u{301}", "caf\u{E9}", "\u{FFFD}", "\u{10000}",
        ]
        #expect(sorted.shuffled().sorted() == sorted)
        #expect(!(Self.composed < Self.composed))
    }

    @Test("Two spellings are two users of a room")
    func twoUsers() {
        var scene = Scene.opened(moderators: [Self.composed])
        #expect(scene.join(Self.decomposed, .moderator, at: .at(0)).answer == "participant")
        #expect(scene.join(Self.composed, .viewer, at: .at(0)).answer == "moderator")
        #expect(scene.snapshot(at: .at(0))?.connected == 2)
    }

    @Test("A definition with the other spelling is another definition")
    func twoDefinitions() {
        var scene = Scene.opened(moderators: [Self.composed])
        #expect(scene.open(moderators: [Self.decomposed], at: .at(1)).log == ["opened"])
        #expect(Command(room: "caf\u{E9}", action: .status) != Command(room: "cafe\u{301}", action: .status))
    }
}
