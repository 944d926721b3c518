import Glibc
import Service

/// A log whose lines can be read back, in a file without a name.
final class LogFile {
    let log: Log
    private let descriptor: Int32
    private let file: UnsafeMutablePointer<FILE>?

    init() {
        file = tmpfile()
        descriptor = file.map { fileno($0) } ?? -1
        log = Log(component: "test", level: .debug, format: .text, descriptor: descriptor)
    }

    deinit { if let file { fclose(file) } }

    /// The lines so far that contain a text.
    func lines(containing text: String = "") -> [String] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            .split(separator: "\n").map(String.init).filter { text.isEmpty || $0.contains(text) }
    }
}
