import Glibc

/// The public JSON test suite beside the package, read without Foundation.
enum JSONSuiteFiles {
    struct File: Sendable {
        let name: String
        let bytes: [UInt8]
    }

    static let directory: String = {
        let tests = #filePath.split(separator: "/").dropLast(4)
        return "/" + tests.joined(separator: "/") + "/shared/data/json-test-suite/test_parsing"
    }()

    static let all: [File] = names().sorted().compactMap { name in
        read("\(directory)/\(name)").map { File(name: name, bytes: $0) }
    }

    static var areThere: Bool { !all.isEmpty }

    static func beginning(_ prefix: String) -> [File] { all.filter { $0.name.hasPrefix(prefix) } }

    private static func names() -> [String] {
        guard let handle = opendir(directory) else { return [] }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".json") { names.append(name) }
        }
        return names
    }

    private static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: buffer.prefix(count))
        }
    }
}
