import Glibc

/// Small files read whole, with a bound, so that a wrong path (a device, a log) cannot fill the memory.
package enum FileText {
    package struct Failure: Error, Sendable, Equatable {
        /// Why, as a person would say it: "No such file or directory".
        package let reason: String
    }

    /// The bytes of a file, or why there are none.
    package static func bytes(path: String, limit: Int) -> Result<[UInt8], Failure> {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { return .failure(systemFailure()) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0 {
                if errno == EINTR { continue }
                return .failure(systemFailure())
            }
            if count == 0 { return .success(bytes) }
            bytes.append(contentsOf: chunk[..<count])
            if bytes.count > limit { return .failure(Failure(reason: "longer than \(limit) bytes")) }
        }
    }

    private static func systemFailure() -> Failure {
        Failure(reason: String(cString: strerror(errno)))
    }
}
