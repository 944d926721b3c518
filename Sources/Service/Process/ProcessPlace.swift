import Glibc

/// Names the system in which a process number means something: one boot of one machine, and in it one container.
package enum ProcessPlace {
    /// Nil where the system does not tell.
    package static let current: String? = {
        guard case .success(let boot) = FileText.bytes(path: "/proc/sys/kernel/random/boot_id", limit: 64),
            let space = link("/proc/self/ns/pid")
        else { return nil }
        let id = String(decoding: boot.prefix { $0 > 0x20 }, as: UTF8.self)
        return id.isEmpty ? nil : "\(id)/\(space)"
    }()

    private static func link(_ path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 64)
        let count = readlink(path, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
