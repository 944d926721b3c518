import Glibc

/// Why an address cannot be listened on, with the remedy.
package struct ListenError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String
}

/// A socket that listens on a configured address.
enum ListeningSocket {
    private static let backlog: Int32 = 64

    /// The descriptor. A name with several addresses is bound to the first that can be had.
    static func open(host: String, port: UInt16) throws(ListenError) -> Int32 {
        let address = SocketAddress.text(host: host, port: port)
        var failure: Int32 = 0
        switch SocketAddress.resolve(host: host, port: port, flags: AI_PASSIVE) {
        case .failure(let error):
            throw ListenError(
                description: "\(address): \(error.reason): set http to an address of this machine")
        case .success(let candidates):
            for candidate in candidates {
                switch listen(on: candidate) {
                case .success(let descriptor): return descriptor
                case .failure(let code): failure = code.number
                }
            }
        }
        throw ListenError(
            description: "\(address): \(String(cString: strerror(failure))): \(remedy(for: failure))")
    }

    private struct Code: Error { let number: Int32 }

    private static func listen(on address: SocketAddress) -> Result<Int32, Code> {
        let descriptor = socket(
            address.family,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return .failure(Code(number: errno)) }
        var yes: Int32 = 1
        // A process that has just ended must not keep its successor from the port.
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let isBound = address.withPointer { bind(descriptor, $0, $1) } == 0
        guard isBound, Glibc.listen(descriptor, backlog) == 0 else {
            let number = errno
            close(descriptor)
            return .failure(Code(number: number))
        }
        return .success(descriptor)
    }

    private static func remedy(for number: Int32) -> String {
        switch number {
        case EADDRINUSE: "another process listens there; give each worker and scheduler a port of its own"
        case EACCES: "ports below 1024 need a privilege; choose a higher one"
        default: "set http to an address of this machine, such as 127.0.0.1:9464, or to off"
        }
    }
}
