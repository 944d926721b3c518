import Glibc
import Service

/// A log whose lines can be read back.
final class LogFile {
    let log: Log
    private let descriptor: Int32

    init(folder: TemporaryFolder, level: Log.Level = .debug) {
        descriptor = open(folder.file("log"), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0o600)
        log = Log(component: "test", level: level, format: .text, descriptor: descriptor)
    }

    deinit { close(descriptor) }

    /// The lines so far that contain a text.
    func lines(containing text: String = "") -> [String] {
        var bytes = [UInt8](repeating: 0, count: Int(lseek(descriptor, 0, SEEK_END)))
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            .split(separator: "\n").map(String.init).filter { text.isEmpty || $0.contains(text) }
    }
}
