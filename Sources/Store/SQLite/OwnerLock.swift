import Glibc
import RoomCore

/// Says who owns a database: an advisory lock on a file beside it, held for the owner's life.
///
/// Two processes on one SQLite file can lose commits without an error, so the second one is refused before
/// SQLite opens anything. The kernel drops the lock when the process dies, however it dies: a file that a
/// dead owner left behind does no harm, and it is never removed (two processes could lock two files of one
/// name). Its content only tells the refused one whom to ask.
final class OwnerLock {
    private let descriptor: Int32

    init(database path: String, startedAt: Instant) throws(StoreError) {
        let lockPath = path + ".lock"
        let opened = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { throw .cannotOpen(path: lockPath, errno: errno) }
        descriptor = opened
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            guard code == EWOULDBLOCK else { throw .cannotOpen(path: lockPath, errno: code) }
            let owner = Self.owner(in: opened)
            throw .heldByAnother(pid: owner.pid, host: owner.host, path: path)
        }
        write(startedAt: startedAt)
    }

    /// Unlocked by name, since a close would not do: a process that another thread is just starting has the descriptor,
    /// too, until it becomes its program.
    deinit {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    /// A failure is passed over: on a full disk the worker must start all the same, to work its outbox off.
    private func write(startedAt: Instant) {
        let text = "\(getpid())\n\(Self.hostName())\n\(startedAt.milliseconds)\n"
        guard ftruncate(descriptor, 0) == 0 else { return }
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    private static func owner(in descriptor: Int32) -> (pid: Int32?, host: String?) {
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return (nil, nil) }
        let lines = bytes[..<count].split(separator: UInt8(ascii: "\n"))
        let pid = lines.first.flatMap { Int32(String(decoding: $0, as: UTF8.self)) }
        let host = lines.dropFirst().first.map { line in
            String(decoding: line.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
        }
        return (pid, host)
    }

    private static func hostName() -> String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "unknown" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
