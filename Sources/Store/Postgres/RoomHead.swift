import RoomCore

/// What is known of a row that was loaded, so that its commit may leave unwritten what seldom changes.
struct RoomHead {
    let version: Int64
    let definition: Definition?
    let sessionDefinition: Definition?
    let phase: Int64?
    let idleSince: Int64?

    /// Whether a room can be written over it without its definitions and indexed columns.
    func covers(_ room: Room) -> Bool {
        phase == RoomFields.phase(of: room.session) && idleSince == RoomFields.idleSince(room)
            && definition == room.definition && sessionDefinition == room.session?.definition
    }
}

/// Definitions by their texts, both ways: most rooms have the same few. Bounded.
struct DefinitionTexts {
    private var byText: [String: Definition] = [:]
    private var texts: [Definition: String] = [:]
    private static let mostCached = 4_096

    mutating func definition(_ text: String, of room: RoomID) throws(StoreError) -> Definition {
        if let known = byText[text] { return known }
        guard let decoded = DefinitionText.decode(text) else {
            throw .corruptRoom(room, "its definition cannot be read")
        }
        remember(decoded, text)
        return decoded
    }

    mutating func text(_ definition: Definition) throws(StoreError) -> String {
        if let known = texts[definition] { return known }
        guard let text = DefinitionText.encode(definition) else {
            throw .refused("a definition cannot be encoded")
        }
        remember(definition, text)
        return text
    }

    private mutating func remember(_ definition: Definition, _ text: String) {
        if byText.count >= Self.mostCached {
            byText.removeAll(keepingCapacity: true)
            texts.removeAll(keepingCapacity: true)
        }
        byText[text] = definition
        texts[definition] = text
    }
}
