import Glibc

/// The machine's name, for people who read a lock file or a log line.
package enum HostName {
    package static var current: String {
        var buffer = [UInt8](repeating: 0, count: 256)
        let code = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { gethostname($0.assumingMemoryBound(to: CChar.self), bytes.count - 1) }
                ?? -1
        }
        return code == 0 ? String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self) : "unknown"
    }
}
