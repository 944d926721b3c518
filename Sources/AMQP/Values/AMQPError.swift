/// Why a channel or a connection ended or could not begin.
package struct AMQPError: Error, Hashable, Sendable {
    package enum Scope: Hashable, Sendable {
        case connection
        case channel
    }

    package enum Kind: Hashable, Sendable {
        /// No TCP connection: refused, no route, timed out.
        case unreachable
        /// The host name could not be resolved, or not in time.
        case dns
        /// The peer ended or garbled the login.
        case handshake
        /// The peer accepted the connection and then said nothing.
        case handshakeTimeout
        /// No trustworthy TLS: unknown authority, wrong name, unreadable CA file, too old a version.
        case tls
        /// 403: wrong password at login, or no permission for an operation.
        case accessRefused
        /// 530: mostly a virtual host that does not exist or is not open to this user.
        case notAllowed
        /// 404.
        case notFound
        /// 405: an exclusive queue of another connection.
        case resourceLocked
        /// 406.
        case preconditionFailed
        /// Any other code in a close.
        case otherClose(UInt16)
        /// The broker ended a consumer, mostly because its queue was deleted or lost its leader.
        case consumerCancelled
        /// Nothing was heard for two heartbeats, or the thread hung in the library and was cut loose.
        case heartbeat
        case socketClosed
        case protocolViolation
        /// The broker did not answer a method in time.
        case rpcTimeout
        /// `reconnect()` was called.
        case reconnectRequested
        /// This process lacks memory, threads or descriptors.
        case resources
    }

    package let scope: Scope
    package let kind: Kind
    /// The broker's reply code, if the broker said why.
    package let code: UInt16?
    /// The broker's or the library's words, on one line.
    package let text: String
    /// Wrong until somebody mends it, so that trying again soon is only noise: it is retried with the longest delay.
    package let isConfiguration: Bool

    package var isRetryable: Bool { !isConfiguration }

    package init(
        scope: Scope, kind: Kind, code: UInt16? = nil, text: String, isConfiguration: Bool = false
    ) {
        self.scope = scope
        self.kind = kind
        self.code = code
        self.text = text
        self.isConfiguration = isConfiguration
    }
}

extension AMQPError {
    /// The broker's close of a channel or a connection, classified.
    ///
    /// 406 is a wrong declaration, unless it is about an acknowledgement: a delivery held beyond the broker's
    /// `consumer_timeout` comes as 406 with no method, and a new channel simply mends it.
    init(scope: Scope, closeCode code: UInt16, text: [UInt8], classID: UInt16, methodID: UInt16) {
        let kind: Kind
        var isConfiguration = true
        switch code {
        case 403: kind = .accessRefused
        case 404:
            kind = .notFound
            isConfiguration = !Self.isAway(text)
        case 405: kind = .resourceLocked
        case 406:
            kind = .preconditionFailed
            isConfiguration = !Self.isAboutAcknowledgement(classID: classID, methodID: methodID)
        case 530: kind = .notAllowed
        default:
            kind = .otherClose(code)
            isConfiguration = false
        }
        self.init(
            scope: scope, kind: kind, code: code, text: SafeText.oneLine(text),
            isConfiguration: isConfiguration)
    }

    /// A classic queue on a node of a cluster that is down: it comes back with the node.
    private static func isAway(_ text: [UInt8]) -> Bool {
        String(decoding: text, as: UTF8.self).contains("is down or inaccessible")
    }

    private static func isAboutAcknowledgement(classID: UInt16, methodID: UInt16) -> Bool {
        switch (classID, methodID) {
        case (0, 0), (60, 80), (60, 90), (60, 120): true
        default: false
        }
    }

    static func protocolViolation(_ text: String) -> AMQPError {
        AMQPError(scope: .connection, kind: .protocolViolation, text: text)
    }
}

extension AMQPError: CustomStringConvertible {
    package var description: String {
        let prefix = code.map { "\(scope) \(kind) \($0)" } ?? "\(scope) \(kind)"
        return text.isEmpty ? prefix : "\(prefix): \(text)"
    }
}
