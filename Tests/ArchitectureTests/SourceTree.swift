import FoundationEssentials

/// One Swift file of the package, as the architecture tests see it.
struct SourceFile {
    /// Relative to the package: `Sources/Service/Log/Log.swift`.
    let path: String
    let lines: [Substring]

    /// The name of its target.
    var target: String {
        String(path.split(separator: "/")[1])
    }

    /// Lines with what is only said about code taken away: comments, so that they may name what code may not use.
    var code: [(number: Int, text: Substring)] {
        lines.enumerated().compactMap { index, line in
            let trimmed = line.drop { $0 == " " }
            return trimmed.hasPrefix("//") ? nil : (index + 1, line)
        }
    }

    /// The modules it imports, without attributes, access levels and kinds: `Glibc` for `internal import struct Glibc.tm`.
    var imports: [String] {
        code.compactMap { _, text in
            let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard let position = words.firstIndex(of: "import"),
                words[..<position].allSatisfy({ $0.hasPrefix("@") || Self.accessLevels.contains($0) }),
                let name = words[(position + 1)...].first(where: { !Self.kinds.contains($0) })
            else { return nil }
            return String(name.prefix { $0 != "." && $0 != ";" })
        }
    }

    private static let accessLevels: Set<Substring> = [
        "public", "package", "internal", "fileprivate", "private",
    ]
    private static let kinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
    ]
}

/// The package's files, found from this one.
enum SourceTree {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func files(under directory: String) throws -> [SourceFile] {
        try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: directory).path)
            .filter { $0.hasSuffix(".swift") }.sorted().map { name in
                let path = directory + "/" + name
                let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                return SourceFile(
                    path: path, lines: text.split(separator: "\n", omittingEmptySubsequences: false))
            }
    }
}
