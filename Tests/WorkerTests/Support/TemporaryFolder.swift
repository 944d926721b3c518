import FoundationEssentials
import Glibc
import Testing

/// A directory of its own, gone with the test.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template = Array(
            "\(FileManager.default.temporaryDirectory.path)/overtime-worker-XXXXXX".utf8CString)
        path = try template.withUnsafeMutableBufferPointer { buffer in
            String(cString: try #require(buffer.baseAddress.flatMap { mkdtemp($0) }))
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { "\(path)/\(name)" }
}
