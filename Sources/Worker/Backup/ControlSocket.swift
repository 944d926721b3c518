import Glibc
import Service
import Store
import Synchronization

/// Where a running worker takes requests about its store: a socket beside the database, for its user and root only.
///
/// Not the broker, since any sender of a message could name a path on this machine. A request is three texts, each
/// ended by a zero byte: `backup`, `new` or `replace`, an absolute path; the answer is `done`, bytes, milliseconds,
/// or `refused`, why. One request at a time; a client that hangs up gives its request up.
package final class ControlSocket: Sendable {
    private let descriptor: Int32
    private let path: String
    private let thread: WorkThread
    private let isStopping: Stopping

    private final class Stopping: Sendable {
        let flag = Atomic<Bool>(false)
        var isSet: Bool { flag.load(ordering: .acquiring) }
    }

    package struct Failure: Error {
        package let reason: String
    }

    /// To be called by the owner of the store: a socket that is there was left by one that is dead.
    package init(
        store: String, _ take: @escaping @Sendable (BackupOrder) -> Void
    ) throws(Failure) {
        path = StorePath.control(of: store)
        let descriptor = try Self.listen(at: path)
        self.descriptor = descriptor
        let stopping = Stopping()
        isStopping = stopping
        do throws(WorkThread.Failure) {
            thread = try WorkThread(name: "control") {
                while !stopping.isSet {
                    let client = accept(descriptor, nil, nil)
                    guard client >= 0 else {
                        if errno == EINTR || errno == ECONNABORTED { continue }
                        // Without descriptors it would spin; what waits in the queue is taken later.
                        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno), !stopping.isSet {
                            poll(nil, 0, 200)
                            continue
                        }
                        return
                    }
                    Self.serve(client, stopping, take)
                    close(client)
                }
            }
        } catch {
            close(descriptor)
            unlink(path)
            throw Failure(reason: error.reason)
        }
    }

    /// To be called while the store is still owned, so that it is never a successor's socket that is removed.
    package func stop() {
        isStopping.flag.store(true, ordering: .releasing)
        unlink(path)
        shutdown(descriptor, Int32(SHUT_RDWR))
        thread.join()
        close(descriptor)
    }

    private static func listen(at path: String) throws(Failure) -> Int32 {
        func failure() -> Failure { Failure(reason: String(cString: strerror(errno))) }
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { throw failure() }
        unlink(path)
        // The file of the socket takes over its mode, so nobody else can connect even for a moment.
        guard fchmod(descriptor, 0o600) == 0,
            UnixSocket.withAddress(path, { bind(descriptor, $0, $1) }) == 0,
            Glibc.listen(descriptor, 8) == 0
        else {
            let failure = failure()
            close(descriptor)
            throw failure
        }
        return descriptor
    }

    private static func serve(
        _ client: Int32, _ stopping: Stopping, _ take: @Sendable (BackupOrder) -> Void
    ) {
        guard UnixSocket.isTrusted(client) else { return }
        UnixSocket.limit(client, milliseconds: 2_000)
        guard let request = UnixSocket.readTexts(client, count: 3) else { return }
        guard request[0] == "backup", ["new", "replace"].contains(request[1]), request[2].hasPrefix("/")
        else {
            UnixSocket.write(
                client, ["refused", "this worker does not know the request: is it of another version?"])
            return
        }
        // It may have waited while the worker stood still, and its client has gone.
        guard !UnixSocket.hasHungUp(client) else { return }
        let order = BackupOrder(path: request[2], replaces: request[1] == "replace")
        take(order)
        while !stopping.isSet {
            switch order.wait(milliseconds: 100) {
            case .done(let bytes, let takenAt):
                UnixSocket.write(client, ["done", "\(bytes)", "\(takenAt)"])
                return
            case .refused(let reason):
                UnixSocket.write(client, ["refused", reason])
                return
            case nil:
                guard UnixSocket.hasHungUp(client) else { continue }
                order.giveUp()
                return
            }
        }
        UnixSocket.write(client, ["refused", "the worker is stopping: try again without it"])
    }
}

/// Asks the worker that owns a store for a backup.
package enum ControlClient {
    package enum Answer: Hashable, Sendable {
        case outcome(BackupOrder.Outcome)
        /// Nobody listens: no worker runs, or it is about to start or to end.
        case nobody
        case notAllowed(String)
        case noAnswer
    }

    package static func backUp(
        store: String, to path: String, replaces: Bool, milliseconds: Int64
    ) -> Answer {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { return .notAllowed(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        UnixSocket.limit(descriptor, milliseconds: milliseconds)
        guard UnixSocket.withAddress(StorePath.control(of: store), { connect(descriptor, $0, $1) }) == 0
        else {
            switch errno {
            case ENOENT, ECONNREFUSED, ENOTDIR, ENOTSOCK: return .nobody
            case EAGAIN: return .noAnswer
            default: return .notAllowed(String(cString: strerror(errno)))
            }
        }
        UnixSocket.write(descriptor, ["backup", replaces ? "replace" : "new", path])
        guard let word = UnixSocket.readTexts(descriptor, count: 1) else { return .noAnswer }
        switch word[0] {
        case "done":
            guard let numbers = UnixSocket.readTexts(descriptor, count: 2),
                let bytes = Int64(numbers[0]), let takenAt = Int64(numbers[1])
            else { return .noAnswer }
            return .outcome(.done(bytes: bytes, takenAt: takenAt))
        case "refused":
            guard let text = UnixSocket.readTexts(descriptor, count: 1) else { return .noAnswer }
            return .outcome(.refused(text[0]))
        default:
            return .noAnswer
        }
    }
}

/// The calls of a Unix-domain socket.
private enum UnixSocket {
    /// The longest text: a path and something to spare.
    private static let longest = 8_192

    static func make() -> Int32 {
        socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    /// An address holds 107 bytes only, so the folder goes in as a descriptor, however long its path.
    static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { String(path[...$0]) } ?? "."
        let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array("/proc/self/fd/\(descriptor)/\(name)".utf8)
        let size = MemoryLayout.size(ofValue: address.sun_path)
        guard bytes.count < size else {
            errno = ENAMETOOLONG
            return -1
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // Closing must not hide why it failed.
        let code = errno
        defer { errno = code }
        return result
    }

    /// The mode of the socket's file says the same; this holds also where a file system keeps no modes.
    static func isTrusted(_ descriptor: Int32) -> Bool {
        var credentials: [UInt32] = [0, 0, 0]
        var length = socklen_t(12)
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else {
            return false
        }
        return credentials[1] == 0 || credentials[1] == geteuid()
    }

    static func limit(_ descriptor: Int32, milliseconds: Int64) {
        let bounded = max(1, milliseconds)
        var limit = timeval(tv_sec: Int(bounded / 1_000), tv_usec: Int(bounded % 1_000) * 1_000)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, length)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, length)
    }

    static func hasHungUp(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLHUP | POLLERR) != 0
    }

    static func write(_ descriptor: Int32, _ texts: [String]) {
        var rest = Array(texts.map { Array($0.utf8) + [0] }.joined())[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Reads byte by byte what is a line or two at most; nil where it does not come in time or is too long.
    static func readTexts(_ descriptor: Int32, count: Int) -> [String]? {
        var texts: [String] = []
        var bytes: [UInt8] = []
        while texts.count < count {
            var byte: UInt8 = 0
            let result = recv(descriptor, &byte, 1, 0)
            if result < 0, errno == EINTR { continue }
            guard result == 1, bytes.count < longest else { return nil }
            guard byte == 0 else {
                bytes.append(byte)
                continue
            }
            guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
            texts.append(text)
            bytes = []
        }
        return texts
    }
}
