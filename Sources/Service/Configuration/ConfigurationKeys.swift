extension ConfigurationKey {
    /// Every key, in the order of `--help` and of `config/overtime.json5`.
    package static let all: [ConfigurationKey] = amqp + tls + storage + output

    private static let amqp = [
        ConfigurationKey(
            "amqp.url", variable: "OVERTIME_AMQP_URL", placeholder: "URL", kind: .text,
            default: "amqp://guest:guest@127.0.0.1:5672/%2f",
            help: "broker, or its nodes by commas; amqps:// is verified",
            expected:
                "amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps://, with special characters percent-encoded; several of them are separated by commas",
            takesFile: true, isSecret: { _ in true }, show: { $0.amqp.url.withoutCredentials }
        ) { text, configuration in
            guard ConfigurationValue.areBrokerURLs(text) else { return false }
            configuration.amqp.url = Secret(text)
            return true
        },
        ConfigurationKey(
            "amqp.prefix", variable: "OVERTIME_AMQP_PREFIX", placeholder: "NAME", kind: .text,
            default: "overtime",
            help: "what the names of exchanges and queues begin with",
            expected: "1 to 100 letters, digits, dots, hyphens or underscores, not beginning with amq",
            show: { $0.amqp.prefix }
        ) { text, configuration in
            guard ConfigurationValue.isPrefix(text) else { return false }
            configuration.amqp.prefix = text
            return true
        },
        ConfigurationKey(
            "amqp.shards", variable: "OVERTIME_SHARDS", placeholder: "N", kind: .number, default: "1",
            help: "command queues; more than one needs the plugin rabbitmq_consistent_hash_exchange",
            expected: "a whole number from 1 to 256", show: { "\($0.amqp.shards)" }
        ) { text, configuration in
            guard let count = ConfigurationValue.whole(text, in: 1...256) else { return false }
            configuration.amqp.shards = count
            return true
        },
        ConfigurationKey(
            "amqp.cluster", variable: "OVERTIME_AMQP_CLUSTER", placeholder: "BOOL", kind: .boolean,
            default: "false",
            help: "the broker is a cluster: ticks and queries are quorum queues too",
            expected: "true or false", show: { "\($0.amqp.cluster)" }
        ) { text, configuration in
            guard let flag = Bool(text) else { return false }
            configuration.amqp.cluster = flag
            return true
        },
        ConfigurationKey(
            "amqp.declare", variable: "OVERTIME_AMQP_DECLARE", placeholder: "BOOL", kind: .boolean,
            default: "true",
            help: "declare what is missing on the broker; false only checks",
            expected: "true or false", show: { "\($0.amqp.declare)" }
        ) { text, configuration in
            guard let flag = Bool(text) else { return false }
            configuration.amqp.declare = flag
            return true
        },
        ConfigurationKey(
            "amqp.replies", variable: "OVERTIME_AMQP_REPLIES", placeholder: "WHERE", kind: .text,
            default: "default",
            help: "publish replies to the default exchange, or to the exchange PREFIX.replies",
            expected: "default or exchange", show: { $0.amqp.replies.rawValue }
        ) { text, configuration in
            guard let replies = Configuration.Replies(rawValue: text) else { return false }
            configuration.amqp.replies = replies
            return true
        },
        ConfigurationKey(
            "amqp.heartbeat", variable: "OVERTIME_AMQP_HEARTBEAT", placeholder: "DURATION", kind: .duration,
            default: "10s", help: "heartbeat with the broker; a dead peer is noticed after two",
            expected: "whole seconds from 1s to 10m (a bare number means minutes)",
            show: { DurationText.format(Int64($0.amqp.heartbeatSeconds) * 1000) }
        ) { text, configuration in
            guard let value = ConfigurationValue.duration(text, in: 1000...600_000), value % 1000 == 0 else {
                return false
            }
            configuration.amqp.heartbeatSeconds = Int(value / 1000)
            return true
        },
        ConfigurationKey(
            "amqp.log", variable: "OVERTIME_AMQP_LOG", placeholder: "DURATION", kind: .duration,
            default: "7d",
            help: "how long the log stream keeps events; off leaves the log out",
            expected: "whole seconds from 1s to 3650d (a bare number means minutes), or off",
            show: { $0.amqp.logRetentionMilliseconds.map(DurationText.format) ?? "off" }
        ) { text, configuration in
            if text == "off" {
                configuration.amqp.logRetentionMilliseconds = nil
                return true
            }
            guard let value = ConfigurationValue.duration(text, in: 1000...ConfigurationValue.decade),
                value % 1000 == 0
            else { return false }
            configuration.amqp.logRetentionMilliseconds = value
            return true
        },
        ConfigurationKey(
            "amqp.operators", variable: "OVERTIME_AMQP_OPERATORS", placeholder: "A,B", kind: .list,
            default: "",
            help: "broker users whose extend and destroy need no user in the room",
            expected: "names of broker users, separated by commas",
            show: { $0.amqp.operators.joined(separator: ",") }
        ) { text, configuration in
            guard let names = ConfigurationValue.list(text) else { return false }
            configuration.amqp.operators = names
            return true
        },
    ]

    private static let tls = [
        ConfigurationKey(
            "amqp.ca", variable: "OVERTIME_AMQP_CA", placeholder: "FILE", kind: .text,
            default: "/etc/ssl/certs/ca-certificates.crt",
            help: "the authorities trusted for amqps://, PEM",
            expected: "the path of a PEM file", show: { $0.amqp.ca }
        ) { text, configuration in
            guard ConfigurationValue.isPath(text) else { return false }
            configuration.amqp.ca = text
            return true
        },
        ConfigurationKey(
            "amqp.certificate", variable: "OVERTIME_AMQP_CERTIFICATE", placeholder: "FILE", kind: .text,
            default: "",
            help: "the client certificate with its chain for amqps://, PEM",
            expected: "the path of a PEM file", show: { $0.amqp.certificate ?? "" }
        ) { text, configuration in
            guard text.isEmpty || ConfigurationValue.isPath(text) else { return false }
            configuration.amqp.certificate = text.isEmpty ? nil : text
            return true
        },
        ConfigurationKey(
            "amqp.key", variable: "OVERTIME_AMQP_KEY", placeholder: "FILE", kind: .text, default: "",
            help: "the client certificate's key, PEM without a passphrase",
            expected: "the path of a PEM file", show: { $0.amqp.key ?? "" }
        ) { text, configuration in
            guard text.isEmpty || ConfigurationValue.isPath(text) else { return false }
            configuration.amqp.key = text.isEmpty ? nil : text
            return true
        },
        ConfigurationKey(
            "amqp.login", variable: "OVERTIME_AMQP_LOGIN", placeholder: "HOW", kind: .text,
            default: "password",
            help: "log in with the URL's password, or with the certificate (SASL EXTERNAL)",
            expected: "password or certificate", show: { $0.amqp.login.rawValue }
        ) { text, configuration in
            guard let login = Configuration.Login(rawValue: text) else { return false }
            configuration.amqp.login = login
            return true
        },
    ]

    private static let storage = [
        ConfigurationKey(
            "events.source", variable: "OVERTIME_EVENTS_SOURCE", placeholder: "TEXT", kind: .text,
            default: "overtime", help: "the source of every CloudEvent",
            expected: "1 to 128 printable ASCII characters without spaces", show: { $0.events.source }
        ) { text, configuration in
            guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else {
                return false
            }
            configuration.events.source = text
            return true
        },
        ConfigurationKey(
            "store", variable: "OVERTIME_STORE", placeholder: "STORE", kind: .text,
            default: "sqlite:overtime.db",
            help: "where rooms are kept: sqlite:PATH, or postgresql:// for several workers",
            expected:
                "sqlite:PATH, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE with special characters percent-encoded",
            takesFile: true, isSecret: { $0.contains("://") || $0.contains("@") },
            show: {
                switch $0.store {
                case .sqlite(let path): "sqlite:\(path)"
                case .postgresql(let url): url.withoutCredentials
                }
            }
        ) { text, configuration in
            if ConfigurationValue.isPostgresURL(text) {
                configuration.store = .postgresql(Secret(text))
                return true
            }
            guard text.hasPrefix("sqlite:"), !text.hasPrefix("sqlite://") else { return false }
            let path = String(text.dropFirst("sqlite:".count))
            // A database in memory would forget every room at the first restart, without a word.
            guard !path.isEmpty, !path.utf8.contains(0), path != ":memory:", !path.hasPrefix("file:") else {
                return false
            }
            configuration.store = .sqlite(path: path)
            return true
        },
        ConfigurationKey(
            "rooms.adhoc", variable: "OVERTIME_ROOMS_ADHOC", placeholder: "BOOL", kind: .boolean,
            default: "false",
            help: "let a join open an unknown room with the defaults",
            expected: "true or false", show: { "\($0.rooms.adhoc)" }
        ) { text, configuration in
            guard let flag = Bool(text) else { return false }
            configuration.rooms.adhoc = flag
            return true
        },
        ConfigurationKey(
            "rooms.duration", variable: "OVERTIME_ROOMS_DURATION", placeholder: "DURATION", kind: .duration,
            default: "60m", help: "how long a session lasts where its room does not say",
            expected: "a duration such as 60m or 1h30m, up to 366d (a bare number means minutes)",
            show: { DurationText.format($0.rooms.durationMilliseconds) }
        ) { text, configuration in
            guard let value = ConfigurationValue.duration(text, in: 1...ConfigurationValue.longestSession)
            else {
                return false
            }
            configuration.rooms.durationMilliseconds = value
            return true
        },
        ConfigurationKey(
            "rooms.retention", variable: "OVERTIME_ROOMS_RETENTION", placeholder: "DURATION", kind: .duration,
            default: "30d", help: "how long a room is kept after its last session",
            expected: "a duration such as 30d, up to 3650d (a bare number means minutes)",
            show: { DurationText.format($0.rooms.retentionMilliseconds) }
        ) { text, configuration in
            guard let value = ConfigurationValue.duration(text, in: 1...ConfigurationValue.decade) else {
                return false
            }
            configuration.rooms.retentionMilliseconds = value
            return true
        },
        ConfigurationKey(
            "ids.retention", variable: "OVERTIME_IDS_RETENTION", placeholder: "DURATION", kind: .duration,
            default: "24h", help: "how long a command's id is remembered",
            expected: "a duration such as 24h, up to 3650d (a bare number means minutes)",
            show: { DurationText.format($0.ids.retentionMilliseconds) }
        ) { text, configuration in
            guard let value = ConfigurationValue.duration(text, in: 1...ConfigurationValue.decade) else {
                return false
            }
            configuration.ids.retentionMilliseconds = value
            return true
        },
    ]

    private static let output = [
        ConfigurationKey(
            "http", variable: "OVERTIME_HTTP", placeholder: "HOST:PORT", kind: .text, default: "off",
            help: "where /metrics, /healthz and /readyz are served, or off",
            expected: "HOST:PORT such as 127.0.0.1:9464 or [::1]:9464, or off",
            show: { configuration in
                guard let address = configuration.http else { return "off" }
                return address.host.contains(":")
                    ? "[\(address.host)]:\(address.port)" : "\(address.host):\(address.port)"
            }
        ) { text, configuration in
            if text == "off" {
                configuration.http = nil
                return true
            }
            guard let address = ConfigurationValue.address(text) else { return false }
            configuration.http = address
            return true
        },
        ConfigurationKey(
            "log.level", variable: "OVERTIME_LOG_LEVEL", placeholder: "LEVEL", kind: .text, default: "info",
            help: "the least important lines to write: debug, info, warning or error",
            expected: "debug, info, warning or error", show: { $0.log.level.name }
        ) { text, configuration in
            guard let level = Log.Level.allCases.first(where: { $0.name == text }) else { return false }
            configuration.log.level = level
            return true
        },
        ConfigurationKey(
            "log.format", variable: "OVERTIME_LOG_FORMAT", placeholder: "FORMAT", kind: .text,
            default: "auto",
            help: "text, json, or auto: text on a terminal, json elsewhere",
            expected: "auto, text or json", show: { $0.log.format.rawValue }
        ) { text, configuration in
            // `auto` is what the configuration was made with.
            if text == "auto" { return true }
            guard let format = Log.Format(rawValue: text) else { return false }
            configuration.log.format = format
            return true
        },
    ]
}
