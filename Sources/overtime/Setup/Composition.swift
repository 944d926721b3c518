import AMQP
import Contract
import Glibc
import RoomCore
import Service
import Worker

/// From a configuration to what the components take: the only place that knows both.
struct Composition {
    let configuration: Configuration
    let endpoint: Endpoint
    let topology: Topology

    /// Reads the configuration in all its layers; prints every problem and ends with 78 where there is one.
    static func load(_ options: Options) -> Composition {
        var flags: [String: String] = [:]
        for key in ConfigurationKey.all {
            if let text = options[String(key.flag.dropFirst(2))] { flags[key.path] = text }
        }
        do {
            let configuration = try Configuration.load(
                flags: flags, environment: ProcessEnvironment.variables(), configPath: options["config"],
                isTerminal: ProcessEnvironment.isTerminal(2))
            return try Composition(configuration)
        } catch let error as ConfigurationError {
            Output.error("the configuration is wrong:\n  " + error.problems.joined(separator: "\n  "))
        } catch let error as EndpointError {
            Output.error("amqp.url is wrong: \(error)")
        } catch let error as Topology.Problem {
            Output.error("the configuration is wrong: \(error.detail)")
        } catch {
            Output.error("the configuration is wrong: \(error)")
        }
        ProcessExit.configuration.end()
    }

    private init(_ configuration: Configuration) throws {
        self.configuration = configuration
        endpoint = try Endpoint(url: configuration.amqp.url.reveal())
        topology = try Topology(
            prefix: configuration.amqp.prefix, shards: configuration.amqp.shards,
            logMaxAge: configuration.amqp.logRetentionMilliseconds.map(Self.logAge),
            replies: configuration.amqp.replies == .exchange ? .exchange : .default)
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
            endpoint: endpoint, connectionName: "\(name) pid \(getpid())", version: Version.current,
            heartbeatSeconds: UInt16(clamping: configuration.amqp.heartbeatSeconds),
            // Five tries of what is wrong for good fit into 30 s.
            backoff: AMQP.Backoff(maximum: .seconds(6)))
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
