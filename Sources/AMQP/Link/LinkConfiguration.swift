/// How a link connects and how long it is patient.
package struct LinkConfiguration: Sendable {
    /// The nodes of the broker; see `NodeRound`.
    package var endpoints: Endpoints
    /// What the broker's lists and logs call this connection.
    package var connectionName: String
    package var product: String
    package var version: String
    /// At least 1: without heartbeats a dead peer is never noticed.
    package var heartbeatSeconds: UInt16
    /// The authorities trusted for `amqps`. Read anew at each connection, as are the two below.
    package var caFile: String
    /// What this client shows to a broker that asks for a certificate.
    package var clientCertificate: ClientCertificate?
    package var login: Login
    /// For one attempt: the name, the connection and the login together. More a dead node never costs.
    package var connectTimeout: Duration
    /// For each answer of the broker; too late is a lost connection.
    package var rpcTimeout: Duration
    package var backoff: Backoff

    package init(
        endpoints: Endpoints, connectionName: String, product: String = "overtime", version: String = "",
        heartbeatSeconds: UInt16 = 10, caFile: String = "/etc/ssl/certs/ca-certificates.crt",
        clientCertificate: ClientCertificate? = nil, login: Login = .password,
        connectTimeout: Duration = .seconds(5), rpcTimeout: Duration = .seconds(10),
        backoff: Backoff = Backoff()
    ) {
        self.endpoints = endpoints
        self.connectionName = connectionName
        self.product = product
        self.version = version
        self.heartbeatSeconds = max(1, heartbeatSeconds)
        self.caFile = caFile
        self.clientCertificate = clientCertificate
        self.login = login
        self.connectTimeout = connectTimeout
        self.rpcTimeout = rpcTimeout
        self.backoff = backoff
    }
}

extension LinkConfiguration {
    /// PEM files: the certificate with its chain, and its key, which has no passphrase.
    package struct ClientCertificate: Hashable, Sendable {
        package var certificateFile: String
        package var keyFile: String

        package init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// How the broker learns who this is.
    package enum Login: Hashable, Sendable {
        /// User and password of the URL (SASL PLAIN).
        case password
        /// The client certificate (SASL EXTERNAL); the broker needs the plugin rabbitmq_auth_mechanism_ssl.
        case certificate
    }
}

/// How long to wait before the next attempt: doubling, with jitter so that many clients do not come back as one.
package struct Backoff: Hashable, Sendable {
    package var first: Duration
    package var maximum: Duration

    package init(first: Duration = .milliseconds(100), maximum: Duration = .seconds(10)) {
        self.first = first
        self.maximum = maximum
    }

    /// The delay before attempt number `failures + 1`, between three quarters and all of the doubled value.
    ///
    /// - Parameter unit: the jitter, from 0 up to 1.
    package func milliseconds(failures: Int, isConfiguration: Bool, unit: Double) -> Int64 {
        let most = max(0, maximum.wholeMilliseconds)
        let doubled = max(1, first.wholeMilliseconds) << Int64(min(max(0, failures - 1), 20))
        let full = isConfiguration ? most : min(most, max(1, doubled))
        return full - Int64(Double(full / 4) * min(max(unit, 0), 1))
    }
}

extension Duration {
    /// Rounded down, and bounded so that later arithmetic cannot overflow.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let bounded = min(max(seconds, -1_000_000_000), 1_000_000_000)
        return bounded * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
