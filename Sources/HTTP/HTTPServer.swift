import CMicroHTTPD
import Glibc
import Synchronization

/// A small HTTP server: GET and HEAD of some paths, answered from memory on one thread of libmicrohttpd.
///
/// | bound | value |
/// | --- | --- |
/// | connections | 64, at most 16 from one address |
/// | request line and headers | 16 KiB a connection |
/// | silence | 10 s, then the connection is closed |
/// | body of a request | none is read: the answer is given with the headers, and ends the connection |
package final class HTTPServer: Sendable {
    /// Answers a path; nil where there is nothing. Called on the server's thread.
    package typealias Handler = @Sendable (_ path: String) -> HTTPAnswer?

    private static let connections: UInt32 = 64
    private static let connectionsPerAddress: UInt32 = 16
    package static let idleSeconds: UInt32 = 10
    private static let connectionBytes = 16 << 10
    private static let stackBytes = 1 << 20

    private final class Context: Sendable {
        let handler: Handler
        init(_ handler: @escaping Handler) { self.handler = handler }
    }

    /// The library's daemon. `@unchecked`: it is a pointer that is used once, by whoever takes it out to stop it.
    private struct Daemon: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private let daemon: Mutex<Daemon?>
    /// Keeps alive what the library's thread calls.
    private let context: Context

    /// - Parameter idleSeconds: how long a silent connection stays.
    package init(
        host: String, port: UInt16, idleSeconds: UInt32 = HTTPServer.idleSeconds, handler: @escaping Handler
    ) throws(ListenError) {
        context = Context(handler)
        let descriptor = try ListeningSocket.open(host: host, port: port)
        let started = overtime_httpd_start(
            descriptor, Self.answer, Unmanaged.passUnretained(context).toOpaque(), Self.connections,
            Self.connectionsPerAddress, idleSeconds, Self.connectionBytes, Self.stackBytes)
        guard let started else {
            close(descriptor)
            throw ListenError(description: "the HTTP server does not start")
        }
        daemon = Mutex(Daemon(pointer: started))
    }

    deinit { stop() }

    /// Closes the socket and every connection, and waits for the thread.
    package func stop() {
        let running = daemon.withLock { daemon in
            defer { daemon = nil }
            return daemon
        }
        if let running { MHD_stop_daemon(running.pointer) }
    }

    private static let answer: MHD_AccessHandlerCallback = { context, connection, path, method, _, _, _, _ in
        guard let context, let connection, let path, let method else { return .NO }
        let handler = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue().handler
        let name = String(cString: method)
        guard name == "GET" || name == "HEAD" else {
            return queue(HTTPAnswer(405, "only GET and HEAD are answered here\n"), on: connection)
        }
        let found = handler(String(cString: path))
        return queue(found ?? HTTPAnswer(404, "there are /healthz, /readyz and /metrics\n"), on: connection)
    }

    private static func queue(_ answer: HTTPAnswer, on connection: OpaquePointer) -> MHD_Result {
        var body = Array(answer.body.utf8)
        let made = body.withUnsafeMutableBytes { bytes in
            MHD_create_response_from_buffer(bytes.count, bytes.baseAddress, .RESPMEM_MUST_COPY)
        }
        guard let response = made else { return .NO }
        defer { MHD_destroy_response(response) }
        MHD_add_response_header(response, "Content-Type", answer.contentType)
        MHD_add_response_header(response, "Cache-Control", "no-store")
        if answer.status == 405 { MHD_add_response_header(response, "Allow", "GET, HEAD") }
        if answer.status == 405 || answer.status == 404 {
            MHD_add_response_header(response, "Connection", "close")
        }
        return MHD_queue_response(connection, answer.status, response)
    }
}
