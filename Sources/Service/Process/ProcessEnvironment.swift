import Glibc

/// What the process was started in: its environment and whether a person is looking.
package enum ProcessEnvironment {
    /// The variables as they were at the start, read from the kernel: C's `environ` may change under a reader.
    package static func variables() -> [String: String] {
        guard case .success(let bytes) = FileText.bytes(path: "/proc/self/environ", limit: 4 << 20) else {
            return [:]
        }
        var variables: [String: String] = [:]
        for entry in bytes.split(separator: 0) {
            guard let equals = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let name = String(decoding: entry[..<equals], as: UTF8.self)
            variables[name] = String(decoding: entry[entry.index(after: equals)...], as: UTF8.self)
        }
        return variables
    }

    /// Whether a file descriptor is a terminal; 1 is standard output, 2 is where logs go.
    package static func isTerminal(_ descriptor: Int32) -> Bool {
        isatty(descriptor) == 1
    }

    /// Whether to colour what goes to a descriptor: only on a terminal, and not where `NO_COLOR` asks for none.
    package static func wantsColour(_ descriptor: Int32, environment: [String: String]) -> Bool {
        isTerminal(descriptor) && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}
