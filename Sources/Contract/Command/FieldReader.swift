internal import RoomCore

/// Why a field, or the body itself, is refused: a whole sentence, and the word for the dead letter.
struct FieldProblem: Error, Equatable {
    let detail: String
    let reason: InvalidCommand.Reason

    init(_ detail: String, reason: InvalidCommand.Reason = .invalidCommand) {
        self.detail = detail
        self.reason = reason
    }
}

/// Takes the fields of one object by name and type. Absent is nil; `null` is a value of a wrong type.
struct FieldReader {
    private let members: [JSONMember]
    /// How sentences call the object's fields: `policy.` before `windows`.
    private let path: String

    init(_ members: [JSONMember], path: String = "") {
        self.members = members
        self.path = path
    }

    func value(_ name: String) -> JSONValue? { members.first { $0.isNamed(name) }?.value }

    /// Refuses the first field that is not known here.
    ///
    /// - Parameters:
    ///   - owner: what the fields belong to, such as `join`.
    ///   - elsewhere: says whose field it would be.
    func refuseUnknown(
        besides known: [String], of owner: String, elsewhere: (String) -> String? = { _ in nil }
    ) throws(FieldProblem) {
        for member in members where !known.contains(where: member.isNamed) {
            let name = PrintableText.quoted(path + member.key)
            if let other = elsewhere(member.key) {
                throw FieldProblem("\(name) is not a field of \(owner) but of \(other): leave it out")
            }
            if let near = Likeness.nearest(to: member.key, among: known) {
                throw FieldProblem("\(name) is not a field of \(owner): did you mean \"\(path + near)\"?")
            }
            throw FieldProblem("\(name) is not a field of \(owner): leave it out (known: \(list(known)))")
        }
    }

    func text(_ name: String) throws(FieldProblem) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.string else { throw wrongType(name, "a string", value) }
        return text
    }

    func word<Word>(_ name: String) throws(FieldProblem) -> Word?
    where Word: RawRepresentable<String> & CaseIterable {
        guard let text = try text(name) else { return nil }
        return try Words.word(text, called: path + name)
    }

    func span(_ name: String) throws(FieldProblem) -> TimeSpan? {
        guard let value = value(name) else { return nil }
        return try span(value, called: path + name)
    }

    /// A JSON number of minutes and nothing else.
    func minutes(_ name: String) throws(FieldProblem) -> TimeSpan? {
        guard let value = value(name) else { return nil }
        switch value {
        case .integer, .real: return try span(value, called: path + name)
        default: throw wrongType(name, "a number of minutes", value)
        }
    }

    func count(_ name: String) throws(FieldProblem) -> Int64? {
        guard let value = value(name) else { return nil }
        guard let count = value.integer else { throw wrongType(name, "a whole number, 0 or more", value) }
        guard count >= 0 else {
            throw FieldProblem("\(path)\(name) must be a whole number, 0 or more, and not negative")
        }
        return count
    }

    func object(_ name: String) throws(FieldProblem) -> FieldReader? {
        guard let value = value(name) else { return nil }
        guard case .object(let members) = value else { throw wrongType(name, "an object", value) }
        return FieldReader(members, path: "\(path)\(name).")
    }

    func spans(_ name: String) throws(FieldProblem) -> [TimeSpan]? {
        guard let value = value(name) else { return nil }
        guard let values = value.array else { throw wrongType(name, "an array of durations", value) }
        var spans: [TimeSpan] = []
        for (index, value) in values.enumerated() {
            spans.append(try span(value, called: "\(path)\(name)[\(index)]"))
        }
        return spans
    }

    func name<Kind>(_ field: String) throws(FieldProblem) -> Identifier<Kind>? {
        guard let text = try text(field) else { return nil }
        return try NameRule.name(text, called: path + field)
    }

    func names<Kind>(_ field: String) throws(FieldProblem) -> [Identifier<Kind>]? {
        guard let value = value(field) else { return nil }
        guard let values = value.array else { throw wrongType(field, "an array of users", value) }
        var names: [Identifier<Kind>] = []
        for (index, value) in values.enumerated() {
            let called = "\(path)\(field)[\(index)]"
            guard let text = value.string else {
                throw FieldProblem("\(called) must be a string, not \(value.typeName)")
            }
            names.append(try NameRule.name(text, called: called))
        }
        return names
    }

    private func span(_ value: JSONValue, called name: String) throws(FieldProblem) -> TimeSpan {
        switch DurationText.span(value) {
        case .success(let span): return span
        case .failure(let problem): throw FieldProblem("\(name) \(problem.detail)")
        }
    }

    private func wrongType(_ name: String, _ expected: String, _ value: JSONValue) -> FieldProblem {
        FieldProblem("\(path)\(name) must be \(expected), not \(value.typeName)")
    }

    private func list(_ names: [String]) -> String { names.joined(separator: ", ") }
}

/// Words of a closed list.
enum Words {
    static func word<Word>(_ text: String, called name: String) throws(FieldProblem) -> Word
    where Word: RawRepresentable<String> & CaseIterable {
        // Unicode calls more equal than we do, but nothing with as many bytes.
        if let word = Word(rawValue: text), word.rawValue.utf8.count == text.utf8.count { return word }
        let words = Word.allCases.map(\.rawValue)
        let hint = Likeness.nearest(to: text, among: words).map { " (did you mean \"\($0)\"?)" } ?? ""
        throw FieldProblem(
            "\(name) must be one of \(words.joined(separator: ", ")), not \(PrintableText.quoted(text))\(hint)"
        )
    }
}
