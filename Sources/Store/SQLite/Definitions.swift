import RoomCore

/// Definitions in memory and in their table: each text stands once, with a count of the rows that use it.
///
/// A room's row holds two numbers, so a join neither reads, decodes nor rewrites the moderators' list. The
/// cache is bounded and must be emptied when a transaction is undone: numbers may then be given again.
final class Definitions {
    private let statements: Statements
    private let connection: Connection
    private var byKey: [Int64: Definition] = [:]
    private var keys: [Definition: Int64] = [:]
    private static let mostCached = 4_096

    init(statements: Statements, connection: Connection) {
        self.statements = statements
        self.connection = connection
    }

    func forget() {
        byKey.removeAll(keepingCapacity: true)
        keys.removeAll(keepingCapacity: true)
    }

    func definition(_ key: Int64, of room: RoomID) throws(StoreError) -> Definition {
        if let known = byKey[key] { return known }
        let statement = statements.definition
        defer { statement.reset() }
        statement.bind(1, key)
        guard try statement.step() else { throw .corruptRoom(room, "its definition \(key) is missing") }
        guard let text = statement.text(0), let decoded = DefinitionText.decode(text) else {
            throw .corruptRoom(room, "its definition \(key) cannot be read")
        }
        remember(decoded, as: key)
        return decoded
    }

    /// The number of a definition, given now where the table does not have it.
    ///
    /// - Parameter candidates: numbers that it most likely has: those in the room's row. Comparing with them
    ///   is cheap, since unchanged definitions share their storage.
    func key(
        for definition: Definition, of room: RoomID, candidates: Int64?...
    ) throws(StoreError) -> Int64 {
        for case let candidate? in candidates where try self.definition(candidate, of: room) == definition {
            return candidate
        }
        if let known = keys[definition] { return known }
        guard let text = DefinitionText.encode(definition) else {
            throw .refused("a definition cannot be encoded")
        }
        let digest = Self.digest(text)
        let key: Int64
        if let found = try find(text, digest: digest) {
            key = found
        } else {
            let insert = statements.insertDefinition
            insert.bind(1, digest)
            insert.bind(2, text)
            try insert.run()
            key = connection.lastInsertedRow
        }
        remember(definition, as: key)
        return key
    }

    /// Counts that a row's references moved. All the new ones first: each may be the only user left of one that another
    /// reference gives up.
    func move(_ references: (old: Int64?, new: Int64?)...) throws(StoreError) {
        for case (let old, let new?) in references where old != new { try count(new, by: 1) }
        for case (let old?, let new) in references where old != new {
            try count(old, by: -1)
            statements.removeUnusedDefinition.bind(1, old)
            try statements.removeUnusedDefinition.run()
            guard connection.changes > 0 else { continue }
            if let definition = byKey.removeValue(forKey: old) { keys[definition] = nil }
        }
    }

    private func count(_ key: Int64, by step: Int64) throws(StoreError) {
        let statement = statements.countDefinition
        statement.bind(1, key)
        statement.bind(2, step)
        try statement.run()
        guard connection.changes == 1 else { throw .corrupt("definition \(key) is missing") }
    }

    private func find(_ text: String, digest: Int64) throws(StoreError) -> Int64? {
        let statement = statements.definitionsByDigest
        defer { statement.reset() }
        statement.bind(1, digest)
        while try statement.step() {
            if let found = statement.text(1), found.utf8.elementsEqual(text.utf8) {
                return statement.integer(0)
            }
        }
        return nil
    }

    private func remember(_ definition: Definition, as key: Int64) {
        if byKey.count >= Self.mostCached { forget() }
        byKey[key] = definition
        keys[definition] = key
    }

    /// FNV-1a: only to find the text again, which is then compared.
    private static func digest(_ text: String) -> Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return Int64(bitPattern: hash)
    }
}
