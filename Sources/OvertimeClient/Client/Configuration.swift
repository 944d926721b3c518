package import AMQP
import Contract
import Glibc
import Service

extension Overtime {
    /// Where the broker is and how to talk to it.
    ///
    /// Everything but the URL has a default that fits a worker with its own defaults. The password of the URL is kept where no
    /// description shows it.
    public struct Configuration: Sendable {
        package var endpoints: Endpoints
        /// For events; nil for the same.
        package var eventsEndpoints: Endpoints?
        /// What the names of exchanges and queues begin with: the worker's `amqp.prefix`.
        public var prefix = "overtime"
        /// The part of this program's own queues' names that tells who it is, `<prefix>.own.<component>.<random>`: the
        /// broker's rights may depend on it.
        public var component = "client"
        /// The same in the names of queues for events; nil for the component.
        public var eventsComponent: String?
        /// What the broker's list of connections shows.
        public var connectionName = "overtime client"
        /// Whether replies come through the exchange `<prefix>.replies`: the worker's `amqp.replies: exchange`.
        public var usesReplyExchange = false
        /// Whether there is the log of events: false where the worker has `amqp.log: off`. Without it events of the time
        /// without a connection are missed, and told as a gap.
        public var usesLog = true
        /// How long a call waits for its answer, and `connect` for the broker, where the call itself does not say.
        public var timeout: Duration = .seconds(10)
        /// Whole seconds, at least one: after two of them without a word the connection counts as lost.
        public var heartbeat: Duration = .seconds(10)
        /// A PEM file with the authorities that are trusted for `amqps`.
        public var authoritiesFile = "/etc/ssl/certs/ca-certificates.crt"
        /// What is shown to a broker that asks for a certificate.
        public var certificate: Certificate?

        /// PEM files: the certificate with its chain, and its key, which has no passphrase.
        public struct Certificate: Hashable, Sendable {
            /// A path.
            public var certificateFile: String
            /// A path; nobody but this program's user should read it.
            public var keyFile: String
            /// Whether it is the login too (SASL EXTERNAL), in place of the URL's user and password.
            public var isLogin: Bool

            /// A certificate that is shown, and logs in only where that is asked for.
            public init(certificateFile: String, keyFile: String, isLogin: Bool = false) {
                self.certificateFile = certificateFile
                self.keyFile = keyFile
                self.isLogin = isLogin
            }
        }

        /// - Parameters:
        ///   - url: `amqp://user:password@host:port/vhost`, or `amqps` for TLS; what is left out is
        ///     guest:guest, 5672 or 5671, and the virtual host `/`. The nodes of a cluster are given as several URLs,
        ///     separated by commas: the connection is made to whichever answers, and after a loss to the next.
        ///   - eventsURL: the same for events, where the broker has another user for them; nil for the first.
        /// - Throws: `malformed` with what is wrong in it; never with the password.
        public init(url: String, eventsURL: String? = nil) throws(OvertimeError) {
            do throws(EndpointError) {
                endpoints = try Endpoints(urls: BrokerURLs.split(url))
                if let eventsURL { eventsEndpoints = try Endpoints(urls: BrokerURLs.split(eventsURL)) }
            } catch {
                throw .malformed(error.description)
            }
        }
    }
}

extension Overtime.Configuration {
    func topology() throws(OvertimeError) -> Topology {
        let topology: Topology
        do throws(Topology.Problem) {
            topology = try Topology(
                prefix: prefix, logMaxAge: usesLog ? "7D" : nil,
                replies: usesReplyExchange ? .exchange : .default)
        } catch {
            throw .malformed(error.detail)
        }
        for name in [component, eventsComponent ?? component]
        where topology.ownQueueName(component: name, token: Overtime.newKey()) == nil {
            throw .malformed("the component \(name.prefix(40))… makes names of queues longer than 255 bytes")
        }
        return topology
    }

    var connection: LinkConfiguration { connection(to: endpoints) }
    var eventsConnection: LinkConfiguration { connection(to: eventsEndpoints ?? endpoints) }

    private func connection(to endpoints: Endpoints) -> LinkConfiguration {
        var link = LinkConfiguration(
            endpoints: endpoints, connectionName: "\(connectionName) pid \(getpid())",
            heartbeatSeconds: UInt16(clamping: heartbeat.components.seconds), caFile: authoritiesFile,
            backoff: Backoff(maximum: .seconds(3)))
        if let certificate {
            link.clientCertificate = LinkConfiguration.ClientCertificate(
                certificateFile: certificate.certificateFile, keyFile: certificate.keyFile)
            link.login = certificate.isLogin ? .certificate : .password
        }
        return link
    }
}
