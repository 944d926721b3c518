import CGetopt
import Glibc
import Service

/// One option of a command, as `getopt_long` and `--help` need it.
struct Option: Sendable {
    let name: String
    /// What stands for the value in `--help`; nil for a flag.
    let placeholder: String?
    let help: String

    init(_ name: String, _ placeholder: String? = nil, _ help: String) {
        self.name = name
        self.placeholder = placeholder
        self.help = help
    }
}

/// A wrong command line: what is wrong, and what would be right.
struct UsageError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}

/// A command line, read.
struct Options {
    private(set) var values: [String: String] = [:]
    private(set) var arguments: [String] = []

    subscript(_ name: String) -> String? { values[name] }
    func has(_ name: String) -> Bool { values[name] != nil }

    /// Reads what follows the command's name. Options may stand anywhere; the last of several counts.
    static func parse(_ words: [String], accepting options: [Option]) throws(UsageError) -> Options {
        var result = Options()
        var failure: UsageError?
        let names = options.map { strdup($0.name) }
        let argv = ([""] + words).map { strdup($0) } + [nil]
        defer {
            names.forEach { free($0) }
            argv.forEach { free($0) }
        }
        var table = zip(options, names).enumerated().map { index, pair in
            option(
                name: pair.1, has_arg: pair.0.placeholder == nil ? no_argument : required_argument, flag: nil,
                val: Int32(1_000 + index))
        }
        table.append(option())
        var arguments = argv
        overtime_getopt_start()
        let count = Int32(words.count + 1)
        while failure == nil {
            let word = Int(max(overtime_getopt_index(), 1))
            let code = getopt_long(count, &arguments, ":", table, nil)
            if code == -1 { break }
            let index = Int(code) - 1_000
            if options.indices.contains(index) {
                result.values[options[index].name] =
                    overtime_getopt_argument().map { String(cString: $0) } ?? ""
            } else {
                let text =
                    arguments[Int(overtime_getopt_index()) - 1].map { String(cString: $0) }
                    ?? words[min(word, words.count) - 1]
                failure = problem(with: text, isMissingValue: code == Int32(UInt8(ascii: ":")), options)
            }
        }
        if let failure { throw failure }
        let first = Int(overtime_getopt_index())
        for index in first..<max(first, Int(count)) {
            if let word = arguments[index] { result.arguments.append(String(cString: word)) }
        }
        return result
    }

    private static func problem(with text: String, isMissingValue: Bool, _ options: [Option]) -> UsageError {
        let name = text.drop { $0 == "-" }.prefix { $0 != "=" }
        if isMissingValue {
            let placeholder = options.first { $0.name == name }?.placeholder ?? "VALUE"
            return UsageError("--\(name) needs a value: --\(name) \(placeholder)")
        }
        if let flag = options.first(where: { $0.name == name }), flag.placeholder == nil {
            return UsageError("--\(name) takes no value")
        }
        let known = options.map { "--" + $0.name }
        // Without its value, which may be a password.
        let word = text.prefix { $0 != "=" }
        return UsageError("unknown option \(word)\(Suggestion.text(for: "--\(name)", among: known))")
    }
}
