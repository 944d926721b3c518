internal import Glibc

/// Makes the TCP connection itself, because the library's own cannot be interrupted and gives up at the first
/// address that does not answer.
enum Dialer {
    /// A connected non-blocking socket; every address gets an equal share of what is left of the time.
    static func connect(
        to addresses: [SocketAddress], timeout: Duration, stop: WakeUp
    ) throws(AMQPError) -> Int32 {
        let deadline = Instant.now + timeout.wholeMilliseconds
        var reason = "no address"
        for (index, address) in addresses.enumerated() {
            let share = max(1, (deadline - .now) / Int64(addresses.count - index))
            switch attempt(address, milliseconds: share, stop: stop) {
            case .connected(let descriptor): return descriptor
            case .stopped: throw .stopped
            case .failed(let code): reason = strerror(code).map { String(cString: $0) } ?? "error \(code)"
            }
        }
        throw AMQPError(scope: .connection, kind: .unreachable, text: "connect: \(reason)")
    }

    private enum Attempt {
        case connected(Int32)
        case stopped
        case failed(Int32)
    }

    private static func attempt(_ address: SocketAddress, milliseconds: Int64, stop: WakeUp) -> Attempt {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.family, type, 0)
        guard descriptor >= 0 else { return .failed(errno) }
        let started = address.bytes.withUnsafeBytes { bytes -> Int32 in
            guard let base = bytes.baseAddress else { return EINVAL }
            let pointer = base.assumingMemoryBound(to: sockaddr.self)
            return Glibc.connect(descriptor, pointer, socklen_t(bytes.count)) == 0 ? 0 : errno
        }
        if started == 0 { return .connected(descriptor) }
        guard started == EINPROGRESS else {
            close(descriptor)
            return .failed(started)
        }
        switch WakeUp.poll(descriptor, events: POLLOUT, or: stop, milliseconds: milliseconds) {
        case .ready:
            var code: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
            if code == 0 { return .connected(descriptor) }
            close(descriptor)
            return .failed(code)
        case .signalled:
            close(descriptor)
            return .stopped
        case .timedOut:
            close(descriptor)
            return .failed(ETIMEDOUT)
        }
    }

    /// Keeps a silent connection honest below AMQP's heartbeats, and small frames undelayed.
    static func tune(_ descriptor: Int32, heartbeatSeconds: Int) {
        func set(_ level: Int32, _ name: Int32, _ value: Int32) {
            var value = value
            setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
        }
        let heartbeat = Int32(clamping: heartbeatSeconds)
        let tcp = Int32(IPPROTO_TCP)
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(tcp, TCP_KEEPIDLE, heartbeat)
        set(tcp, TCP_KEEPINTVL, max(1, heartbeat / 2))
        set(tcp, TCP_KEEPCNT, 4)
        // Later than the watchdog, which can say what happened.
        set(tcp, TCP_USER_TIMEOUT, heartbeat.multipliedReportingOverflow(by: 4000).partialValue)
        set(tcp, TCP_NODELAY, 1)
    }
}
