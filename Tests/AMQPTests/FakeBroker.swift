import Glibc
import Synchronization
import Testing

@testable import AMQP

/// A listening port whose first connections meet a script, on a thread of its own.
final class FakeBroker: Sendable {
    let port: UInt16
    private let listener: Int32
    private let thread = Mutex<OwnedThread?>(nil)

    /// - Parameter script: runs for each connection; its peer is kept open until the fake ends.
    init(_ script: @escaping @Sendable (RawPeer) throws -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = RawPeer.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutableBytes(of: &address) { bytes in
            let pointer = bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: sockaddr.self)
            bind(listener, pointer, length)
            listen(listener, 16)
            getsockname(listener, pointer, &length)
        }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        let started = try OwnedThread.start(name: "fake-broker", stackBytes: 1 << 20) {
            var peers: [RawPeer] = []
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                let peer = RawPeer(descriptor: descriptor)
                peers.append(peer)
                // A script ends early when its peer hangs up, which is what many tests want of it.
                try? script(peer)
            }
        }
        thread.withLock { $0 = started }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    var endpoint: Endpoint {
        Endpoint(
            isTLS: false, host: "127.0.0.1", port: port, user: "guest", password: Secret("guest"),
            virtualHost: "/")
    }

    func configuration(heartbeatSeconds: UInt16 = 10) -> LinkConfiguration {
        LinkConfiguration(
            endpoints: Endpoints(endpoint), connectionName: "fake", heartbeatSeconds: heartbeatSeconds,
            connectTimeout: .seconds(3), rpcTimeout: .seconds(3),
            backoff: Backoff(first: .milliseconds(20), maximum: .milliseconds(200)))
    }

    /// A port on which nobody listens.
    static func closedPort() throws -> UInt16 {
        try FakeBroker { _ in }.port
    }
}
