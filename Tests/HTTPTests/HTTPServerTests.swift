import Service
import Testing

@testable import HTTP

@Suite("The HTTP server", .serialized)
struct HTTPServerTests {
    private func serve(_ port: UInt16) throws -> HTTPServer {
        try HTTPServer(host: "127.0.0.1", port: port, idleSeconds: 1) { path in
            path == "/readyz" ? HTTPAnswer(503, "store: it fails\n") : nil
        }
    }

    private func ask(_ port: UInt16, _ request: String) throws -> String {
        let connection = try #require(RawConnection(port: port))
        connection.say(request)
        return connection.rest()
    }

    @Test("answers GET and HEAD, and says 404 and 405 to what is not there")
    func methods() throws {
        let port = freePort()
        let server = try serve(port)
        defer { server.stop() }
        let tail = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        let get = try ask(port, "GET /readyz?verbose=1" + tail)
        #expect(get.hasPrefix("HTTP/1.1 503 "))
        #expect(get.hasSuffix("\r\n\r\nstore: it fails\n"))
        let head = try ask(port, "HEAD /readyz" + tail)
        #expect(head.hasPrefix("HTTP/1.1 503 ") && head.hasSuffix("\r\n\r\n"))
        #expect(head.contains("Content-Length: 16\r\n"))
        #expect(try ask(port, "GET /etc/passwd" + tail).hasPrefix("HTTP/1.1 404 "))
        #expect(try ask(port, "GET /readyz/../metrics" + tail).hasPrefix("HTTP/1.1 404 "))
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
            let answer = try ask(port, "\(method) /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 405 ") && answer.contains("Allow: GET, HEAD\r\n"), "\(method)")
        }
    }

    @Test(
        "what is no request, or too large, ends its own connection only",
        arguments: [
            "\u{0}\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", "GET /readyz HTTP/9.9\r\n\r\n",
            "GET /\(String(repeating: "x", count: 100_000)) HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /readyz HTTP/1.1\r\nHost: x\r\nX: \(String(repeating: "y", count: 100_000))\r\n\r\n",
            "POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nabc",
            "POST /readyz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n",
            "GET /%00%ff%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        ])
    func hostile(request: String) throws {
        let port = freePort()
        let server = try serve(port)
        defer { server.stop() }
        let answer = try ask(port, request)
        #expect(answer.isEmpty || answer.hasPrefix("HTTP/1."))
        #expect(!answer.contains(" 200 "))
        let tail = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        #expect(try ask(port, "GET /readyz" + tail).hasPrefix("HTTP/1.1 503 "))
    }

    @Test("one client cannot take all connections, and gets none above its share")
    func connections() throws {
        let port = freePort()
        let server = try serve(port)
        defer { server.stop() }
        // Silent, so they end by themselves after a second.
        let silent = (0..<16).compactMap { _ in RawConnection(port: port) }
        #expect(silent.count == 16)
        let tail = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        #expect(try ask(port, "GET /readyz" + tail) == "")
        #expect(silent.map { $0.rest() }.allSatisfy { $0 == "" || $0.hasPrefix("HTTP/1.") })
        // The server closes a connection a moment before it counts it as gone.
        var answer = ""
        let end = MonotonicClock.milliseconds() + 10_000
        while answer.isEmpty, MonotonicClock.milliseconds() < end {
            answer = try ask(port, "GET /readyz" + tail)
        }
        #expect(answer.hasPrefix("HTTP/1.1 503 "))
    }

    @Test("an address that is taken, foreign or unknown is named with the remedy")
    func addresses() throws {
        let port = freePort()
        let server = try serve(port)
        defer { server.stop() }
        let taken = #expect(throws: ListenError.self) { try serve(port) }
        #expect(taken?.description.contains("127.0.0.1:\(port)") == true)
        #expect(taken?.description.contains("another process listens there") == true)
        let foreign = #expect(throws: ListenError.self) {
            try HTTPServer(host: "192.0.2.1", port: port) { _ in nil }
        }
        #expect(foreign?.description.contains("192.0.2.1") == true)
        let unknown = #expect(throws: ListenError.self) {
            try HTTPServer(host: "nowhere.invalid", port: port) { _ in nil }
        }
        #expect(unknown?.description.contains("nowhere.invalid") == true)
    }

    @Test("IPv6 is served as well")
    func six() throws {
        let port = freePort()
        let server: HTTPServer
        do throws(ListenError) {
            server = try HTTPServer(host: "::1", port: port) { _ in HTTPAnswer(200, "six\n") }
        } catch {
            // A machine without IPv6 says so, and names the address.
            #expect(error.description.contains("[::1]:\(port)"))
            return
        }
        defer { server.stop() }
        let answer = ReadinessQuestion.ask(
            Configuration.HTTPAddress(host: "::1", port: port), until: MonotonicClock.milliseconds() + 20_000)
        #expect(try answer.get() == HTTPAnswer(200, "six\n"))
    }

    @Test("after a stop the port is free, and a second stop is no error")
    func stops() throws {
        let port = freePort()
        for _ in 0..<3 {
            let server = try serve(port)
            server.stop()
            server.stop()
            #expect(RawConnection(port: port) == nil)
        }
    }

    @Test("the question about readiness gets the status and every line")
    func question() throws {
        let port = freePort()
        let address = Configuration.HTTPAddress(host: "127.0.0.1", port: port)
        let deadline = MonotonicClock.milliseconds() + 20_000
        #expect(throws: ReadinessQuestion.Failure.self) {
            try ReadinessQuestion.ask(address, until: deadline).get()
        }
        let server = try serve(port)
        defer { server.stop() }
        let answer = try ReadinessQuestion.ask(address, until: deadline).get()
        #expect((answer.status, answer.body) == (503, "store: it fails\n"))
        #expect(ReadinessQuestion.parse(Array("SSH-2.0-x\r\n\r\n".utf8)) == nil)
        #expect(ReadinessQuestion.parse([]) == nil)
        #expect(ReadinessQuestion.parse(Array("HTTP/1.1".utf8)) == nil)
        #expect(ReadinessQuestion.parse(Array("HTTP/1.1 abc\r\n\r\n".utf8)) == nil)
    }
}
