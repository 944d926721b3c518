/// Everything that can be set, with its defaults. `ConfigurationKey.all` says how each is named and read.
package struct Configuration: Sendable, Equatable {
    package struct AMQP: Sendable, Equatable {
        package var url = Secret("amqp://guest:guest@127.0.0.1:5672/%2f")
        package var prefix = "overtime"
        package var shards = 1
        /// Whether ticks and queries have replicated queues.
        package var cluster = false
        package var declare = true
        package var replies = Replies.default
        package var heartbeatSeconds = 10
        /// How long the log stream keeps events; nil leaves the log out.
        package var logRetentionMilliseconds: Int64? = 7 * 86_400_000
        /// The `user_id`s that may extend and destroy without being in the room.
        package var operators: [String] = []
        /// The authorities trusted for `amqps://`.
        package var ca = "/etc/ssl/certs/ca-certificates.crt"
        /// The client certificate with its chain, and its key; nil where none is shown.
        package var certificate: String?
        package var key: String?
        package var login = Login.password
    }

    /// How the broker learns who this is.
    package enum Login: String, Sendable, CaseIterable {
        /// User and password of the URL.
        case password
        /// The client certificate (SASL EXTERNAL).
        case certificate
    }

    /// Where replies are published.
    package enum Replies: String, Sendable, CaseIterable {
        /// To the default exchange.
        case `default`
        /// To `<prefix>.replies`, for workers without the right on `amq.default`.
        case exchange
    }

    package struct Events: Sendable, Equatable {
        /// CloudEvents' `source`.
        package var source = "overtime"
    }

    package enum Store: Sendable, Equatable {
        case sqlite(path: String)
        /// A connection URL, with its password.
        case postgresql(Secret)
    }

    package struct Rooms: Sendable, Equatable {
        package var adhoc = false
        package var durationMilliseconds: Int64 = 60 * 60_000
        package var retentionMilliseconds: Int64 = 30 * 86_400_000
    }

    package struct IDs: Sendable, Equatable {
        package var retentionMilliseconds: Int64 = 24 * 3_600_000
    }

    /// Where `/metrics` and health are served.
    package struct HTTPAddress: Sendable, Equatable {
        package var host: String
        package var port: UInt16

        package init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }
    }

    package struct Logging: Sendable, Equatable {
        package var level = Log.Level.info
        /// Already decided: `auto` is settled by whether a terminal looks on.
        package var format = Log.Format.json
    }

    package var amqp = AMQP()
    package var events = Events()
    package var store = Store.sqlite(path: "overtime.db")
    package var rooms = Rooms()
    package var ids = IDs()
    package var http: HTTPAddress?
    package var log = Logging()

    /// The defaults.
    package init(isTerminal: Bool = false) {
        log.format = isTerminal ? .text : .json
    }
}
