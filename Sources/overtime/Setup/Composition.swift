import AMQP
import Contract
import Glibc
import OvertimeClient
import RoomCore
import Service
import Store
import Worker

/// From a configuration to what the components take: the only place that knows both.
struct Composition {
    let configuration: Configuration
    /// Every key with its value and where it was set.
    let settings: [ConfigurationReading.Setting]
    let endpoints: Endpoints
    let topology: Topology

    /// Reads the configuration in all its layers; prints every problem and ends with 78 where there is one.
    static func load(_ options: Options) -> Composition {
        var flags: [String: String] = [:]
        for key in ConfigurationKey.all {
            if let text = options[String(key.flag.dropFirst(2))] { flags[key.path] = text }
        }
        let reading = Configuration.read(
            flags: flags, environment: ProcessEnvironment.variables(), configPath: options["config"],
            isTerminal: ProcessEnvironment.isTerminal(2))
        var problems = reading.problems
        let endpoints = endpoints(reading, &problems)
        let topology = topology(reading, &problems)
        if let endpoints { problems += tlsProblems(reading.configuration.amqp, endpoints) }
        if case .postgresql(let url) = reading.configuration.store,
            let problem = PostgresStore.problem(withURL: url.reveal())
        {
            problems.append("store (\(reading.origin(of: "store"))): \(problem)")
        }
        if let endpoints, let topology, problems.isEmpty {
            return Composition(
                configuration: reading.configuration, settings: reading.settings, endpoints: endpoints,
                topology: topology)
        }
        Output.error("the configuration is wrong:\n  " + problems.joined(separator: "\n  "))
        ProcessExit.configuration.end()
    }

    private static func endpoints(
        _ reading: ConfigurationReading, _ problems: inout [String]
    ) -> Endpoints? {
        do throws(EndpointError) {
            return try Endpoints(urls: BrokerURLs.split(reading.configuration.amqp.url.reveal()))
        } catch {
            problems.append("amqp.url (\(reading.origin(of: "amqp.url"))): \(error)")
            return nil
        }
    }

    private static func topology(_ reading: ConfigurationReading, _ problems: inout [String]) -> Topology? {
        let amqp = reading.configuration.amqp
        do throws(Topology.Problem) {
            return try Topology(
                prefix: amqp.prefix, shards: amqp.shards, isCluster: amqp.cluster,
                logMaxAge: amqp.logRetentionMilliseconds.map(logAge),
                replies: amqp.replies == .exchange ? .exchange : .default)
        } catch {
            problems.append("amqp: \(error.detail)")
            return nil
        }
    }

    /// What fits together badly; a certificate that is never shown must not be silent.
    private static func tlsProblems(_ amqp: Configuration.AMQP, _ endpoints: Endpoints) -> [String] {
        var problems: [String] = []
        if (amqp.certificate == nil) != (amqp.key == nil) {
            problems.append("amqp.certificate and amqp.key go together: set both or none")
        }
        if amqp.certificate != nil, endpoints.all.contains(where: { !$0.isTLS }) {
            problems.append("amqp.certificate has no effect on amqp://: use amqps://")
        }
        if amqp.login == .certificate, amqp.certificate == nil {
            problems.append("amqp.login certificate needs amqp.certificate and amqp.key")
        }
        return problems
    }

    /// In the largest unit that divides it, as RabbitMQ's streams take it.
    private static func logAge(_ milliseconds: Int64) -> String {
        let units: [(String, Int64)] = [("D", 86_400_000), ("h", 3_600_000), ("m", 60_000)]
        for (unit, size) in units where milliseconds % size == 0 { return "\(milliseconds / size)\(unit)" }
        return "\(max(1, milliseconds / 1_000))s"
    }

    func log(_ component: String) -> Log {
        Log(
            component: component, configuration: configuration.log,
            environment: ProcessEnvironment.variables())
    }

    /// A connection under a name that the broker's list shows.
    func link(_ name: String) -> LinkConfiguration {
        LinkConfiguration(
            endpoints: endpoints, connectionName: "\(name) pid \(getpid())", version: Version.current,
            heartbeatSeconds: UInt16(clamping: configuration.amqp.heartbeatSeconds),
            caFile: configuration.amqp.ca, clientCertificate: clientCertificate,
            login: configuration.amqp.login == .certificate ? .certificate : .password,
            // Five tries of what is wrong for good fit into 30 s.
            backoff: AMQP.Backoff(maximum: .seconds(6)))
    }

    /// The library, under the configuration in force; own queues and the connection are named after the command.
    func client(_ command: String) -> Overtime {
        Overtime(
            connection: link("overtime \(command)"), topology: topology, component: command,
            timeout: .seconds(10))
    }

    /// Asks with a client of its own and waits.
    func asking<Value: Sendable>(
        _ command: String, _ body: @escaping @Sendable (Overtime) async throws(OvertimeError) -> Value
    ) -> Result<Value, OvertimeError> {
        let overtime = client(command)
        return Waiting.forValue {
            let result: Result<Value, OvertimeError>
            do throws(OvertimeError) { result = .success(try await body(overtime)) } catch {
                result = .failure(error)
            }
            await overtime.close()
            return result
        }
    }

    private var clientCertificate: LinkConfiguration.ClientCertificate? {
        guard let certificate = configuration.amqp.certificate, let key = configuration.amqp.key else {
            return nil
        }
        return LinkConfiguration.ClientCertificate(certificateFile: certificate, keyFile: key)
    }

    var storeLocation: StoreLocation {
        switch configuration.store {
        case .sqlite(let path): .sqlite(path: path)
        case .postgresql(let url): .postgresql(url)
        }
    }

    var workerSettings: WorkerSettings {
        WorkerSettings(
            topology: topology,
            rooms: RoomSettings(
                adhoc: configuration.rooms.adhoc,
                duration: TimeSpan(milliseconds: configuration.rooms.durationMilliseconds)),
            source: configuration.events.source, operators: Set(configuration.amqp.operators),
            idRetention: TimeSpan(milliseconds: configuration.ids.retentionMilliseconds),
            roomRetention: TimeSpan(milliseconds: configuration.rooms.retentionMilliseconds))
    }
}
