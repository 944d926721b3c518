internal import CRabbitMQ
internal import Glibc

/// Why the peer's certificate was refused, noted by OpenSSL while it looks.
final class TLSVerdict {
    /// At a fixed address, for as long as the connection lives.
    let error: UnsafeMutablePointer<Int32>

    init() {
        error = .allocate(capacity: 1)
        error.initialize(to: 0)
    }

    deinit { error.deallocate() }

    /// The first doubt, in OpenSSL's words; nil where there was none.
    var words: String? {
        guard error.pointee != 0 else { return nil }
        return X509_verify_cert_error_string(Int(error.pointee)).map { String(cString: $0) }
    }

    /// The last reason that OpenSSL gave on this thread.
    static func takeReason() -> String? {
        overtime_tls_reason().map { SafeText.oneLine(String(cString: $0).utf8) }
    }
}

// TLS with the peer's chain and name verified, always; there is no way to leave it out.
extension Connection {
    /// Connects over TLS, at least 1.2. All files are read here, so that a rotated one is used from the next connection on.
    func openTLS(
        to endpoint: Endpoint, _ configuration: LinkConfiguration, timeout: Duration
    ) throws(AMQPError) {
        guard let socket = amqp_ssl_socket_new(state) else {
            throw AMQPError(scope: .connection, kind: .resources, text: "no memory for a TLS socket")
        }
        let verdict = TLSVerdict()
        tls = verdict
        _ = TLSVerdict.takeReason()
        amqp_ssl_socket_set_verify_peer(socket, 1)
        amqp_ssl_socket_set_verify_hostname(socket, 1)
        overtime_tls_prepare(socket, verdict.error)
        // 0.11 never loads the system's own authorities.
        guard amqp_ssl_socket_set_cacert(socket, configuration.caFile) == AMQP_STATUS_OK.rawValue else {
            throw Self.fileError("the CA file", configuration.caFile)
        }
        if let client = configuration.clientCertificate { try show(client, on: socket) }
        let versions = amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST)
        guard versions == AMQP_STATUS_OK.rawValue else { throw Self.tlsError("TLS 1.2 is not available") }
        var limit = timeval(timeout)
        let status = amqp_socket_open_noblock(socket, endpoint.host, Int32(endpoint.port), &limit)
        guard status != AMQP_STATUS_OK.rawValue else { return }
        throw connectError(status, host: endpoint.host, verdict)
    }

    private func show(
        _ client: LinkConfiguration.ClientCertificate, on socket: OpaquePointer
    ) throws(AMQPError) {
        guard let text = PEMFile.text(client.keyFile) else {
            throw Self.fileError("the key file", client.keyFile)
        }
        guard !text.contains("ENCRYPTED") else {
            throw Self.tlsError(
                "the key file \(SafeText.oneLine(client.keyFile.utf8)) has a passphrase: give a key without one"
            )
        }
        guard
            amqp_ssl_socket_set_key(socket, client.certificateFile, client.keyFile)
                == AMQP_STATUS_OK.rawValue,
            overtime_tls_key_fits(socket) == 1
        else {
            throw Self.fileError(
                "the client certificate \(SafeText.oneLine(client.certificateFile.utf8)) with the key file",
                client.keyFile)
        }
    }

    private func connectError(_ status: Int32, host: String, _ verdict: TLSVerdict) -> AMQPError {
        let reason = TLSVerdict.takeReason()
        let name = SafeText.oneLine(host.utf8)
        switch status {
        case AMQP_STATUS_TIMEOUT.rawValue:
            return AMQPError(
                scope: .connection, kind: .handshakeTimeout, text: "connect over TLS: timed out")
        case AMQP_STATUS_SOCKET_ERROR.rawValue:
            return AMQPError(
                scope: .connection, kind: .unreachable, text: "connect over TLS: no connection")
        case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED.rawValue:
            return Self.tlsError(
                "the certificate of \(name) is for another name: connect by one of its DNS names")
        case AMQP_STATUS_SSL_PEER_VERIFY_FAILED.rawValue, AMQP_STATUS_SSL_CONNECTION_FAILED.rawValue:
            if let words = verdict.words {
                return Self.tlsError("the certificate of \(name) is not trusted: \(words)")
            }
            // Cut in the middle, as by a broker that restarts: nothing is wrong with anybody's settings.
            guard let reason else {
                return AMQPError(status: status, doing: "connect over TLS", isLogin: true)
            }
            return Self.tlsError("connect over TLS: \(reason)")
        default:
            return AMQPError(status: status, doing: "connect over TLS", isLogin: true)
        }
    }

    /// With TLS 1.3 a broker looks at our certificate only after we have taken the handshake for complete.
    func loginError(_ status: Int32, _ configuration: LinkConfiguration) -> AMQPError {
        let error = AMQPError(status: status, doing: "log in", isLogin: true)
        if status == AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD.rawValue, configuration.login == .certificate
        {
            return AMQPError(
                scope: .connection, kind: .handshake,
                text:
                    "log in: the broker offers no EXTERNAL; it needs the plugin rabbitmq_auth_mechanism_ssl",
                isConfiguration: true)
        }
        guard tls != nil, error.kind == .tls, let reason = TLSVerdict.takeReason() else { return error }
        let isAlert = reason.contains("alert")
        guard isAlert else {
            return AMQPError(scope: .connection, kind: .handshake, text: "log in over TLS: \(reason)")
        }
        return Self.tlsError(
            configuration.clientCertificate == nil
                ? "the broker wants a client certificate: \(reason)"
                : "the broker refuses our certificate: \(reason)")
    }

    private static func tlsError(_ text: String) -> AMQPError {
        AMQPError(scope: .connection, kind: .tls, text: text, isConfiguration: true)
    }

    private static func fileError(_ what: String, _ path: String) -> AMQPError {
        let reason = TLSVerdict.takeReason().map { " (\($0))" } ?? ""
        return tlsError("\(what) \(SafeText.oneLine(path.utf8)) cannot be used\(reason)")
    }
}

private enum PEMFile {
    /// At most 64 KiB of a file; nil where it cannot be read.
    static func text(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        var length = 0
        while length < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                read(descriptor, buffer.baseAddress?.advanced(by: length), buffer.count - length)
            }
            guard count >= 0 else { return nil }
            guard count > 0 else { break }
            length += count
        }
        return String(decoding: bytes[..<length], as: UTF8.self)
    }
}
