import Dispatch
import Glibc
import Synchronization

/// Stands between a store and its server, and does what a network does.
final class Relay: Sendable {
    enum Mode { case pass, swallowAnswers, refuse }

    let port: UInt16
    private let listener: Int32
    private let state = Mutex<(mode: Mode, pairs: [(client: Int32, server: Int32)], isOver: Bool)>(
        (.pass, [], false))
    private let ended = DispatchSemaphore(value: 0)

    init(to target: UInt16) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        guard isBound else { throw Timeout(what: "a port is bound") }
        port = UInt16(bigEndian: address.sin_port)
        self.listener = listener
        DispatchQueue(label: "relay").async { self.run(target) }
    }

    deinit { close(listener) }

    var mode: Mode {
        get { state.withLock { $0.mode } }
        set { state.withLock { $0.mode = newValue } }
    }

    /// Ends all connections that are there.
    func cut() {
        state.withLock { state in
            for (client, server) in state.pairs {
                shutdown(client, Int32(SHUT_RDWR))
                shutdown(server, Int32(SHUT_RDWR))
            }
        }
    }

    func end() {
        state.withLock { $0.isOver = true }
        ended.wait()
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        return address
    }

    private func run(_ target: UInt16) {
        var pairs: [(client: Int32, server: Int32)] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            state.withLock { $0.pairs = pairs }
            var waited = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
            for pair in pairs {
                waited.append(pollfd(fd: pair.client, events: Int16(POLLIN), revents: 0))
                waited.append(pollfd(fd: pair.server, events: Int16(POLLIN), revents: 0))
            }
            let ready = poll(&waited, nfds_t(waited.count), 10)
            let (mode, isOver) = state.withLock { ($0.mode, $0.isOver) }
            if isOver { break }
            guard ready > 0 else { continue }
            var kept: [(client: Int32, server: Int32)] = []
            for (index, pair) in pairs.enumerated() {
                let isOpen =
                    move(waited[2 * index + 1], to: pair.server, &buffer, isKept: true)
                    && move(waited[2 * index + 2], to: pair.client, &buffer, isKept: mode == .pass)
                if isOpen {
                    kept.append(pair)
                } else {
                    close(pair.client)
                    close(pair.server)
                }
            }
            pairs = kept
            if waited[0].revents != 0, let pair = accepted(target, mode) { pairs.append(pair) }
        }
        for pair in pairs {
            close(pair.client)
            close(pair.server)
        }
        ended.signal()
    }

    private func accepted(_ target: UInt16, _ mode: Mode) -> (Int32, Int32)? {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return nil }
        guard mode != .refuse else {
            close(client)
            return nil
        }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(target)
        let isThere = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isThere else {
            close(client)
            close(server)
            return nil
        }
        return (client, server)
    }

    /// False where the connection is over.
    private func move(_ from: pollfd, to: Int32, _ buffer: inout [UInt8], isKept: Bool) -> Bool {
        guard from.revents != 0 else { return true }
        let count = recv(from.fd, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        guard isKept else { return true }
        var sent = 0
        while sent < count {
            let more = buffer.withUnsafeBytes { bytes in
                send(to, bytes.baseAddress?.advanced(by: sent), count - sent, Int32(MSG_NOSIGNAL))
            }
            guard more > 0 else { return false }
            sent += more
        }
        return true
    }
}
