import Glibc
import Testing

@testable import AMQP

/// A TLS server of the openssl program, with a certificate of its own making for the name `localhost`.
private final class TLSServer: Sendable {
    let port: UInt16
    let certificate: String
    private let directory: String
    private let pid: pid_t

    /// - Parameter isExpired: its certificate was good until yesterday.
    static func make(arguments: [String] = [], isExpired: Bool = false) async throws -> TLSServer {
        try await aside { try TLSServer(arguments: arguments, isExpired: isExpired) }
    }

    private init(arguments: [String], isExpired: Bool) throws {
        var template = Array("/tmp/amqp-tls-XXXXXX".utf8CString)
        directory = String(cString: try #require(mkdtemp(&template)))
        certificate = directory + "/cert.pem"
        let key = directory + "/key.pem"
        let made = try Self.run([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ])
        try Self.wait(made)
        if isExpired {
            // `req` takes no days in the past.
            try Self.wait(
                Self.run([
                    "x509", "-in", certificate, "-signkey", key, "-days", "-1", "-out", certificate,
                ]))
        }
        port = try FakeBroker.closedPort()
        pid = try Self.run(
            ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key, "-quiet"]
                + arguments)
    }

    deinit {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        for name in ["cert.pem", "key.pem", "encrypted.pem"] { unlink(directory + "/" + name) }
        rmdir(directory)
    }

    /// Its own certificate, with its key or with another file for it.
    func client(key: String? = nil) -> LinkConfiguration.ClientCertificate {
        LinkConfiguration.ClientCertificate(
            certificateFile: certificate, keyFile: key ?? directory + "/key.pem")
    }

    /// The server's key once more, with a passphrase.
    func encryptedKey() async throws -> String {
        let path = directory + "/encrypted.pem"
        return try await aside { [directory] in
            let made = try Self.run([
                "pkey", "-in", directory + "/key.pem", "-aes256", "-passout", "pass:secret", "-out", path,
            ])
            try Self.wait(made)
            return path
        }
    }

    private static func wait(_ pid: pid_t) throws {
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        try #require(status == 0, "openssl could not make a file")
    }

    private static func run(_ arguments: [String]) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor in Int32(0)...2 {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        var pointers = (["openssl"] + arguments).map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        pointers.append(nil)
        var pid: pid_t = 0
        try #require(posix_spawnp(&pid, "openssl", &actions, nil, pointers, environ) == 0)
        return pid
    }

    /// The first thing a link says about this server, once it listens.
    func verdict(
        host: String, caFile: String, client: LinkConfiguration.ClientCertificate? = nil
    ) async throws -> AMQPError {
        let configuration = LinkConfiguration(
            endpoints: Endpoints(
                Endpoint(
                    isTLS: true, host: host, port: port, user: "u", password: Secret("p"), virtualHost: "/")),
            connectionName: "tls", caFile: caFile, clientCertificate: client, connectTimeout: .seconds(1),
            backoff: Backoff(first: .milliseconds(20), maximum: .milliseconds(100)))
        let log = EventLog()
        let link = Link(configuration: configuration, channels: { [] }, observer: log.observer)
        link.start()
        let error = try await log.next("a verdict") { event -> AMQPError? in
            if case .disconnected(let error, _) = event, error.kind != .unreachable { return error }
            return nil
        }
        try await link.stopAside()
        return error
    }
}

private let hasOpenSSL = access("/usr/bin/openssl", X_OK) == 0

@Suite(.enabled(if: hasOpenSSL, "needs /usr/bin/openssl"), .timeLimit(.minutes(1)))
struct TLSTests {
    @Test("a trusted peer of the right name is talked to")
    func trusted() async throws {
        let server = try await TLSServer.make()
        // It knows no AMQP: TLS is done once the login is what fails.
        let error = try await server.verdict(host: "localhost", caFile: server.certificate)
        #expect([.handshake, .handshakeTimeout].contains(error.kind))
        #expect(error.text.hasPrefix("log in"))
    }

    @Test("an unknown authority is refused, and so is another name")
    func untrusted() async throws {
        let server = try await TLSServer.make()
        let stranger = try await server.verdict(
            host: "localhost", caFile: "/etc/ssl/certs/ca-certificates.crt")
        #expect(stranger.kind == .tls)
        #expect(stranger.isConfiguration)
        #expect(stranger.text.contains("not trusted: self-signed certificate"))
        let otherName = try await server.verdict(host: "127.0.0.1", caFile: server.certificate)
        #expect(otherName.kind == .tls)
        #expect(otherName.isConfiguration)
        #expect(otherName.text.contains("is for another name"))
    }

    @Test("an expired certificate is refused and called expired")
    func expired() async throws {
        let server = try await TLSServer.make(isExpired: true)
        let error = try await server.verdict(host: "localhost", caFile: server.certificate)
        #expect(error.kind == .tls && error.isConfiguration)
        #expect(error.text.contains("expired"))
    }

    @Test("files that cannot be used are named before anything is sent")
    func files() async throws {
        let server = try await TLSServer.make()
        let other = try await TLSServer.make()
        let encrypted = try await server.encryptedKey()
        let missing = try await server.verdict(host: "localhost", caFile: "/nowhere/ca.pem")
        #expect(missing.text.contains("CA file /nowhere/ca.pem cannot be used"))
        for (client, words) in [
            (server.client(key: encrypted), "has a passphrase"),
            (server.client(key: "/nowhere/key.pem"), "key file /nowhere/key.pem cannot be used"),
            (server.client(key: server.certificate), "cannot be used"),
            (server.client(key: other.client().keyFile), "key values mismatch"),
        ] {
            let error = try await server.verdict(
                host: "localhost", caFile: server.certificate, client: client)
            #expect(error.kind == .tls && error.isConfiguration)
            #expect(error.text.contains(words), "\(error)")
        }
    }

    @Test("a peer that wants a client certificate is told apart")
    func wantsCertificate() async throws {
        let server = try await TLSServer.make(arguments: ["-Verify", "1", "-verify_return_error"])
        let none = try await server.verdict(host: "localhost", caFile: server.certificate)
        #expect(none.text.contains("wants a client certificate"), "\(none)")
        #expect(none.isConfiguration)
        let stranger = try await TLSServer.make()
        let refused = try await server.verdict(
            host: "localhost", caFile: server.certificate, client: stranger.client())
        #expect(refused.text.contains("refuses our certificate"), "\(refused)")
    }

    @Test("nothing older than TLS 1.2 is accepted")
    func oldVersion() async throws {
        let server = try await TLSServer.make(arguments: ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
        let error = try await server.verdict(host: "localhost", caFile: server.certificate)
        #expect(error.kind == .tls && error.isConfiguration)
        #expect(error.text.contains("protocol"), "\(error)")
    }
}
