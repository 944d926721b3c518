internal import CRabbitMQ
internal import Glibc

/// One connection of librabbitmq, confined to the thread that made it.
///
/// The library has no locks, so this class is not `Sendable` and never leaves its thread. It only moves frames:
/// nothing here waits for an answer except the login. After any error the connection is of no more use.
final class Connection {
    let state: amqp_connection_state_t
    /// What is known of the peer's certificate; nil without TLS.
    var tls: TLSVerdict?
    private let arena = Arena()

    private(set) var frameMaximum = 0
    private(set) var channelMaximum = 0
    private(set) var heartbeatSeconds = 0

    init() throws(AMQPError) {
        guard let state = amqp_new_connection() else {
            throw AMQPError(scope: .connection, kind: .resources, text: "no memory for a connection")
        }
        self.state = state
    }

    /// The socket should be shut down before (`LinkControl.release`), so that a farewell over TLS cannot hang on a
    /// dead peer.
    deinit {
        amqp_destroy_connection(state)
    }

    /// The library's socket; its owner may close it at any time, so keep a duplicate.
    var descriptor: Int32 { amqp_get_sockfd(state) }

    /// Takes over a connected, non-blocking TCP socket.
    func adopt(_ descriptor: Int32) throws(AMQPError) {
        guard let socket = amqp_tcp_socket_new(state) else {
            close(descriptor)
            throw AMQPError(scope: .connection, kind: .resources, text: "no memory for a socket")
        }
        amqp_tcp_socket_set_sockfd(socket, descriptor)
    }

    /// Logs in with all the capabilities that the link depends on, and returns the broker's properties.
    func logIn(
        to endpoint: Endpoint, _ configuration: LinkConfiguration, timeout: Duration
    ) throws(AMQPError) -> Table {
        defer { arena.release() }
        var limit = timeval(timeout)
        amqp_set_handshake_timeout(state, &limit)
        var rpcLimit = timeval(configuration.rpcTimeout)
        amqp_set_rpc_timeout(state, &rpcLimit)
        var properties = arena.table(Self.clientProperties(configuration))
        let heartbeat = Int32(max(1, configuration.heartbeatSeconds))
        let reply =
            switch configuration.login {
            case .password:
                overtime_login_plain(
                    state, endpoint.virtualHost, 0, Self.frameMaximum, heartbeat, &properties, endpoint.user,
                    endpoint.password.value)
            case .certificate:
                // The broker takes the name from the certificate, whatever is said here; nothing at all makes the
                // library fail.
                overtime_login_external(
                    state, endpoint.virtualHost, 0, Self.frameMaximum, heartbeat, &properties,
                    endpoint.user.isEmpty ? "certificate" : endpoint.user)
            }
        switch reply.reply_type {
        case AMQP_RESPONSE_NORMAL:
            break
        case AMQP_RESPONSE_SERVER_EXCEPTION:
            throw serverException(reply.reply)
        case AMQP_RESPONSE_LIBRARY_EXCEPTION:
            throw loginError(reply.library_error, configuration)
        default:
            throw AMQPError(
                scope: .connection, kind: .handshake, text: "log in: the peer closed the connection")
        }
        frameMaximum = Int(amqp_get_frame_max(state))
        channelMaximum = Int(amqp_get_channel_max(state))
        heartbeatSeconds = max(1, Int(amqp_get_heartbeat(state)))
        return amqp_get_server_properties(state).flatMap { Table($0.pointee) } ?? Table()
    }

    /// The next frame that has arrived, without waiting: `nil` if there is none.
    ///
    /// It is also the only place where heartbeats are sent and missed ones noticed.
    func nextFrame() throws(AMQPError) -> (channel: Int, frame: Frame)? {
        while true {
            var frame = amqp_frame_t()
            var now = timeval(tv_sec: 0, tv_usec: 0)
            let status = amqp_simple_wait_frame_noblock(state, &frame, &now)
            if status == AMQP_STATUS_TIMEOUT.rawValue { return nil }
            guard status == AMQP_STATUS_OK.rawValue else { throw AMQPError(status: status, doing: "read") }
            if let decoded = try Frame(frame) { return (Int(frame.channel), decoded) }
        }
    }

    /// Frames that a sending call has read aside: the socket would not announce them.
    var hasBufferedFrames: Bool { amqp_frames_enqueued(state) != 0 || amqp_data_in_buffer(state) != 0 }

    /// Gives the library its memory back; without it every frame ever read is kept.
    func releaseBuffers() { amqp_maybe_release_buffers(state) }

    /// Sends one message. Its properties must fit (`Properties.fit`).
    func publish(_ publication: Publication, channel: Int) throws(AMQPError) {
        defer { arena.release() }
        var properties = arena.properties(publication.properties)
        let exchange = arena.bytes(publication.exchange)
        let routingKey = arena.bytes(publication.routingKey)
        let status = publication.body.withUnsafeBytes { body in
            amqp_basic_publish(
                state, amqp_channel_t(channel), exchange, routingKey, publication.mandatory ? 1 : 0, 0,
                &properties,
                amqp_bytes_t(len: body.count, bytes: UnsafeMutableRawPointer(mutating: body.baseAddress)))
        }
        try check(status, "publish")
        // The library marks the last frame of such a body as "more to come", and the kernel waits 200 ms for more.
        let size = publication.body.count
        if size > 0, size % (frameMaximum - 8) == 0 { try sendHeartbeat() }
    }

    func send(_ method: ChannelMethod, channel: Int) throws(AMQPError) {
        defer { arena.release() }
        try check(method.send(state: state, channel: amqp_channel_t(channel), arena: arena), "send a method")
    }

    func sendClose() throws(AMQPError) {
        var close = amqp_connection_close_t()
        close.reply_code = UInt16(AMQP_REPLY_SUCCESS)
        try check(amqp_send_method(state, 0, AMQP_CONNECTION_CLOSE_METHOD, &close), "close")
    }

    func sendCloseOK() throws(AMQPError) {
        var closeOK = amqp_connection_close_ok_t()
        try check(amqp_send_method(state, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &closeOK), "close")
    }

    private func sendHeartbeat() throws(AMQPError) {
        var frame = amqp_frame_t()
        frame.frame_type = UInt8(AMQP_FRAME_HEARTBEAT)
        try check(amqp_send_frame(state, &frame), "send a heartbeat")
    }

    private func check(_ status: Int32, _ what: String) throws(AMQPError) {
        guard status == AMQP_STATUS_OK.rawValue else { throw AMQPError(status: status, doing: what) }
    }

    private func serverException(_ method: amqp_method_t) -> AMQPError {
        guard method.id == AMQP_CONNECTION_CLOSE_METHOD, let decoded = method.decoded else {
            return AMQPError(scope: .connection, kind: .handshake, text: "log in: an unexpected answer")
        }
        let error = AMQPError(decoded.assumingMemoryBound(to: amqp_connection_close_t.self).pointee)
        var closeOK = amqp_connection_close_ok_t()
        amqp_send_method(state, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &closeOK)
        return error
    }

    /// A frame this large holds header tables nested some 18,600 deep, for which the thread's stack is sized.
    private static let frameMaximum: Int32 = 131_072

    private static func clientProperties(_ configuration: LinkConfiguration) -> Table {
        let platform = "Swift, librabbitmq " + (amqp_version().map { String(cString: $0) } ?? "?")
        var properties: Table = [
            "connection_name": .text(configuration.connectionName), "product": .text(configuration.product),
            "platform": .text(platform),
        ]
        if !configuration.version.isEmpty { properties["version"] = .text(configuration.version) }
        // The name is "capabilities": under any other the broker overlooks them in silence.
        properties["capabilities"] = .table([
            "consumer_cancel_notify": .bool(true), "connection.blocked": .bool(true),
            "basic.nack": .bool(true),
            "publisher_confirms": .bool(true), "authentication_failure_close": .bool(true),
            "exchange_exchange_bindings": .bool(true),
        ])
        return properties
    }
}

extension timeval {
    init(_ duration: Duration) {
        let milliseconds = max(1, duration.wholeMilliseconds)
        self.init(tv_sec: Int(milliseconds / 1000), tv_usec: Int(milliseconds % 1000) * 1000)
    }
}
