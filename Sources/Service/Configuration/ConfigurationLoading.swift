extension Configuration {
    /// Variables that begin like ours and are no keys: the file's name, and what tests and scripts use.
    private static let otherVariables: Set<String> = ["OVERTIME_CONFIG", "OVERTIME_BIN"]
    private static let longestFile = 1 << 20

    /// The configuration in force: defaults, then the file, then the environment, then flags; the last one set counts.
    ///
    /// `flags` maps key paths to texts. Without a `configPath`, `OVERTIME_CONFIG` may name the file. Every layer is
    /// checked, also what a later one covers: a wrong value is a mistake wherever it stands.
    package static func load(
        flags: [String: String], environment: [String: String], configPath: String?, isTerminal: Bool
    ) throws(ConfigurationError) -> Configuration {
        var loader = Loader(configuration: Configuration(isTerminal: isTerminal))
        if let path = configPath ?? environment["OVERTIME_CONFIG"], configPath != nil || path != "" {
            loader.readFile(path)
        }
        loader.readEnvironment(environment, others: otherVariables)
        loader.readFlags(flags)
        guard loader.problems.isEmpty else { throw ConfigurationError(problems: loader.problems) }
        return loader.configuration
    }

    private struct Loader {
        var configuration: Configuration
        var problems: [String] = []

        mutating func readFile(_ path: String) {
            let bytes: [UInt8]
            switch FileText.bytes(path: path, limit: Configuration.longestFile) {
            case .success(let content): bytes = content
            case .failure(let failure):
                problems.append("file \(path): cannot be read: \(failure.reason)")
                return
            }
            do throws(JSON5.Failure) {
                let document = try JSON5.parse(bytes)
                guard case .object(let members) = document else {
                    problems.append("file \(path): holds no object; { amqp: { … }, … } would be right")
                    return
                }
                read(members, under: "", file: path)
            } catch {
                problems.append("file \(path) line \(error.line): \(error.reason)")
            }
        }

        private mutating func read(_ members: [JSON5.Member], under parent: String, file: String) {
            for member in members {
                let path = parent + member.name
                let origin = ConfigurationOrigin.file(path: file, line: member.line)
                let isGroup = ConfigurationKey.all.contains { $0.path.hasPrefix(path + ".") }
                if let key = ConfigurationKey.all.first(where: { $0.path == path }) {
                    if let text = key.text(of: member.value) {
                        set(key, text, origin)
                    } else {
                        let what = key.isSecret("") ? "" : " \(member.value.kind)"
                        problems.append("\(path) (\(origin)):\(what) is not right; expected \(key.expected)")
                    }
                } else if isGroup, case .object(let inner) = member.value {
                    read(inner, under: path + ".", file: file)
                } else if isGroup {
                    problems.append(
                        "\(path) (\(origin)): \(member.value.kind) is not right; expected an object of keys")
                } else {
                    let known = ConfigurationKey.all.map(\.path) + ConfigurationKey.groups
                    problems.append(
                        "\(path) (\(origin)): unknown key\(Suggestion.text(for: path, among: known))")
                }
            }
        }

        mutating func readEnvironment(_ environment: [String: String], others: Set<String>) {
            for key in ConfigurationKey.all {
                if let text = environment[key.variable] { set(key, text, .variable(key.variable)) }
            }
            let known = ConfigurationKey.all.map(\.variable)
            for name in environment.keys.sorted() where name.hasPrefix("OVERTIME_") {
                guard !name.hasPrefix("OVERTIME_TEST_"), !others.contains(name), !known.contains(name) else {
                    continue
                }
                let suggestion = Suggestion.text(for: name, among: known + ["OVERTIME_CONFIG"])
                problems.append("\(name) (environment): unknown variable\(suggestion)")
            }
        }

        mutating func readFlags(_ flags: [String: String]) {
            for key in ConfigurationKey.all {
                if let text = flags[key.path] { set(key, text, .flag(key.flag)) }
            }
            let known = ConfigurationKey.all.map(\.path)
            for path in flags.keys.sorted() where !known.contains(path) {
                problems.append("\(path) (flag): unknown key\(Suggestion.text(for: path, among: known))")
            }
        }

        private mutating func set(_ key: ConfigurationKey, _ text: String, _ origin: ConfigurationOrigin) {
            if key.apply(text, &configuration) { return }
            let value = key.isSecret(text) ? "the value" : "\"\(Suggestion.printable(text))\""
            problems.append("\(key.path) (\(origin)): \(value) is not right; expected \(key.expected)")
        }
    }
}

extension ConfigurationKey {
    /// A file's value as the text that a variable would hold, or nil where it is of a wrong type.
    fileprivate func text(of value: JSON5) -> String? {
        switch (kind, value) {
        case (.text, .string(let text)), (.duration, .string(let text)), (.list, .string(let text)): text
        case (.number, .number(let text)), (.duration, .number(let text)): text
        case (.boolean, .bool(let flag)): flag ? "true" : "false"
        case (.list, .array(let elements)): Self.joined(elements)
        default: nil
        }
    }

    private static func joined(_ elements: [JSON5]) -> String? {
        var names: [String] = []
        for element in elements {
            guard case .string(let name) = element, !name.isEmpty, !name.contains(",") else { return nil }
            names.append(name)
        }
        return names.joined(separator: ",")
    }
}
