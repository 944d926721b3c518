extension Configuration {
    /// Variables that begin like ours and are no keys: the file's name, and what tests and scripts use.
    private static let otherVariables: Set<String> = ["OVERTIME_CONFIG", "OVERTIME_BIN"]
    private static let longestFile = 1 << 20
    private static let longestSecret = 64 << 10

    /// The configuration in force: defaults, then the file, then the environment, then flags; the last one set counts.
    ///
    /// `flags` maps key paths to texts. Without a `configPath`, `OVERTIME_CONFIG` may name the file. Every layer is
    /// checked, also what a later one covers: a wrong value is a mistake wherever it stands.
    ///
    /// A value that can hold a secret may stand in a file of its own, which `<variable>_FILE` names: what is in the
    /// environment is seen by every child and in every dump of the process.
    package static func load(
        flags: [String: String], environment: [String: String], configPath: String?, isTerminal: Bool
    ) throws(ConfigurationError) -> Configuration {
        let reading = read(
            flags: flags, environment: environment, configPath: configPath, isTerminal: isTerminal)
        guard reading.problems.isEmpty else { throw ConfigurationError(problems: reading.problems) }
        return reading.configuration
    }

    /// As `load`, but with what is right beside what is wrong, so that a caller can add the problems it knows of.
    package static func read(
        flags: [String: String], environment: [String: String], configPath: String?, isTerminal: Bool
    ) -> ConfigurationReading {
        var loader = Loader(configuration: Configuration(isTerminal: isTerminal))
        if let path = configPath ?? environment["OVERTIME_CONFIG"], configPath != nil || path != "" {
            loader.readFile(path)
        }
        loader.readEnvironment(environment, others: otherVariables)
        loader.readFlags(flags)
        return ConfigurationReading(
            configuration: loader.configuration, problems: loader.problems, origins: loader.origins)
    }

    private struct Loader {
        var configuration: Configuration
        var problems: [String] = []
        /// Of the keys that are not at their default, by path.
        var origins: [String: ConfigurationOrigin] = [:]

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
                if let variable = key.fileVariable, let path = environment[variable] {
                    if environment[key.variable] != nil {
                        problems.append(
                            "\(key.path): \(key.variable) and \(variable) are both set; set one of them")
                    }
                    readSecret(key, .secretFile(variable: variable, path: path), path)
                }
            }
            let known =
                ConfigurationKey.all.map(\.variable) + ConfigurationKey.all.compactMap(\.fileVariable)
            for name in environment.keys.sorted() where name.hasPrefix("OVERTIME_") {
                guard !name.hasPrefix("OVERTIME_TEST_"), !others.contains(name), !known.contains(name) else {
                    continue
                }
                let suggestion = Suggestion.text(for: name, among: known + ["OVERTIME_CONFIG"])
                problems.append("\(name) (environment): unknown variable\(suggestion)")
            }
        }

        /// The whole file is the value, but for the line's end that every editor adds.
        private mutating func readSecret(
            _ key: ConfigurationKey, _ origin: ConfigurationOrigin, _ path: String
        ) {
            switch FileText.bytes(path: path, limit: Configuration.longestSecret) {
            case .failure(let failure):
                problems.append("\(key.path) (\(origin)): cannot be read: \(failure.reason)")
            case .success(var bytes):
                if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
                if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    problems.append("\(key.path) (\(origin)): is not UTF-8")
                    return
                }
                set(key, text, origin)
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
            if key.apply(text, &configuration) {
                origins[key.path] = origin
                return
            }
            var isHidden = key.isSecret(text)
            if case .secretFile = origin { isHidden = true }
            let value = isHidden ? "the value" : "\"\(Suggestion.printable(text))\""
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
