internal import Glibc
internal import Synchronization

/// An address to connect to, as the system calls want it.
struct SocketAddress: Hashable, Sendable {
    var family: Int32
    var bytes: [UInt8]
}

/// Host names to addresses, with a limit of our own.
///
/// `getaddrinfo` takes as long as the name servers like, and nothing stops it. It runs on a helper thread; the caller
/// waits for the helper or for its own limit, whichever is first. A helper that still hangs is waited for again by
/// the next attempt for the same name instead of being joined by a second one.
final class Resolver {
    private struct Name: Hashable {
        let host: String
        let port: UInt16
    }

    private var pending: [Name: Lookup] = [:]
    private let lookUp: @Sendable (_ host: String, _ port: UInt16) -> Lookup.Result

    /// - Parameter lookUp: takes as long as it likes.
    init(lookUp: @escaping @Sendable (String, UInt16) -> Lookup.Result = Lookup.lookUp) {
        self.lookUp = lookUp
    }

    /// - Parameter stop: ends the wait at once.
    func resolve(host: String, port: UInt16, timeout: Duration, stop: WakeUp) throws(AMQPError)
        -> [SocketAddress]
    {
        let name = Name(host: host, port: port)
        let lookup: Lookup
        if let started = pending[name] {
            lookup = started
        } else {
            let lookUp = lookUp
            lookup = try Lookup.start { lookUp(host, port) }
            pending[name] = lookup
        }
        guard lookup.done.wait(milliseconds: timeout.wholeMilliseconds, or: stop) else {
            throw AMQPError(
                scope: .connection, kind: .dns,
                text: "the name \(SafeText.oneLine(host.utf8)) was not resolved in time")
        }
        pending[name] = nil
        switch lookup.result.withLock({ $0 }) {
        case .addresses(let addresses) where !addresses.isEmpty:
            return addresses
        case .addresses, nil:
            throw AMQPError(
                scope: .connection, kind: .dns, text: "the name \(SafeText.oneLine(host.utf8)) has no address"
            )
        case .failure(let text):
            throw AMQPError(
                scope: .connection, kind: .dns, text: "the name \(SafeText.oneLine(host.utf8)): \(text)")
        }
    }
}

final class Lookup: Sendable {
    enum Result: Sendable {
        case addresses([SocketAddress])
        case failure(String)
    }

    let done: WakeUp
    let result = Mutex<Result?>(nil)

    private init(done: WakeUp) {
        self.done = done
    }

    static func start(_ lookUp: @escaping @Sendable () -> Result) throws(AMQPError) -> Lookup {
        guard let done = WakeUp() else { throw .noDescriptor }
        let lookup = Lookup(done: done)
        do {
            // Nobody joins it: it ends when the name servers have answered or given up.
            _ = try OwnedThread.start(name: "amqp-resolve", stackBytes: 1 << 20) {
                let result = lookUp()
                lookup.result.withLock { $0 = result }
                lookup.done.signal()
            }
        } catch {
            throw AMQPError(scope: .connection, kind: .resources, text: "no thread: error \(error.code)")
        }
        return lookup
    }

    @Sendable static func lookUp(host: String, port: UInt16) -> Result {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_protocol = Int32(IPPROTO_TCP)
        hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            let words = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
            return .failure(SafeText.oneLine(words.utf8))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            if let address = entry.ai_addr {
                let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen))
                addresses.append(SocketAddress(family: entry.ai_family, bytes: Array(bytes)))
            }
            next = entry.ai_next
        }
        return .addresses(addresses)
    }
}

extension AMQPError {
    static let noDescriptor = AMQPError(
        scope: .connection, kind: .resources, text: "no file descriptor is left")
    /// Never told to anybody: the link ends in silence when it is stopped.
    static let stopped = AMQPError(scope: .connection, kind: .socketClosed, text: "stopped")
}
