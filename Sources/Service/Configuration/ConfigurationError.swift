/// Why a configuration cannot be used: every problem at once, so that nobody mends them one start at a time.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// One line each: the key, where the value came from, the value unless it is secret, and what would be right.
    package let problems: [String]

    package var description: String {
        problems.joined(separator: "\n")
    }
}

/// Where a value was set, as a problem names it.
enum ConfigurationOrigin: Sendable, Equatable, CustomStringConvertible {
    case file(path: String, line: Int)
    case variable(String)
    /// A variable that names a file which holds the value alone.
    case secretFile(variable: String, path: String)
    case flag(String)

    var description: String {
        switch self {
        case .file(let path, let line): "file \(path) line \(line)"
        case .variable(let name): "variable \(name)"
        case .secretFile(let variable, let path): "variable \(variable), file \(Suggestion.printable(path))"
        case .flag(let name): "flag \(name)"
        }
    }
}
