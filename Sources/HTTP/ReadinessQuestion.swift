import Glibc
package import Service

/// Asks a running service's `/readyz`: one request, bounded in time and size, for the health checks of containers.
package enum ReadinessQuestion {
    package struct Failure: Error, Sendable, Equatable {
        package let reason: String
    }

    private static let mostBytes = 64 << 10

    /// The status and the body, or why there is no answer; `deadline` on the monotonic clock in milliseconds.
    package static func ask(
        _ address: Configuration.HTTPAddress, until deadline: Int64
    ) -> Result<HTTPAnswer, Failure> {
        let name = SocketAddress.text(host: address.host, port: address.port)
        var reason = "no address"
        switch SocketAddress.resolve(host: address.host, port: address.port) {
        case .failure(let failure): reason = failure.reason
        case .success(let candidates):
            for candidate in candidates {
                switch exchange(candidate, host: name, until: deadline) {
                case .success(let bytes):
                    return parse(bytes).map { .success($0) }
                        ?? .failure(Failure(reason: "\(name): the answer is no HTTP"))
                case .failure(let failure): reason = failure.reason
                }
            }
        }
        return .failure(Failure(reason: "\(name): \(reason)"))
    }

    private static func exchange(
        _ address: SocketAddress, host: String, until deadline: Int64
    ) -> Result<[UInt8], Failure> {
        let descriptor = socket(
            address.family,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return .failure(systemFailure(errno)) }
        defer { close(descriptor) }
        if address.withPointer({ connect(descriptor, $0, $1) }) != 0 {
            guard errno == EINPROGRESS else { return .failure(systemFailure(errno)) }
            guard waitFor(descriptor, POLLOUT, until: deadline) else { return .failure(late) }
            var number: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size)
            guard number == 0 else { return .failure(systemFailure(number)) }
        }
        let request = "GET /readyz HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
        // It fits into the buffer of a new socket.
        let sent = Array(request.utf8).withUnsafeBytes {
            send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == request.utf8.count else { return .failure(systemFailure(errno)) }
        return receive(from: descriptor, until: deadline)
    }

    private static func receive(from descriptor: Int32, until deadline: Int64) -> Result<[UInt8], Failure> {
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while answer.count < mostBytes {
            guard waitFor(descriptor, POLLIN, until: deadline) else { return .failure(late) }
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count < 0, errno == EAGAIN || errno == EINTR { continue }
            guard count >= 0 else { return .failure(systemFailure(errno)) }
            if count == 0 { break }
            answer.append(contentsOf: chunk[..<count])
        }
        return .success(answer)
    }

    private static var late: Failure { Failure(reason: "no answer in time") }

    private static func systemFailure(_ number: Int32) -> Failure {
        Failure(reason: String(cString: strerror(number)))
    }

    private static func waitFor(_ descriptor: Int32, _ events: Int32, until deadline: Int64) -> Bool {
        while true {
            let left = deadline - MonotonicClock.milliseconds()
            guard left > 0 else { return false }
            var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let count = poll(&entry, 1, Int32(clamping: left))
            if count > 0 { return true }
            if count < 0, errno != EINTR { return false }
        }
    }

    /// `HTTP/1.1 200 OK`, headers, an empty line, the body.
    static func parse(_ bytes: [UInt8]) -> HTTPAnswer? {
        let text = String(decoding: bytes, as: UTF8.self)
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = UInt32(words[1]),
            let end = lines.firstIndex(of: "")
        else { return nil }
        return HTTPAnswer(status, lines[(end + 1)...].joined(separator: "\r\n"))
    }
}
