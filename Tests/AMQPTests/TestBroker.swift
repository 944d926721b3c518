import Glibc
import Testing

@testable import AMQP

/// The broker of this test run, if there is one.
enum TestBroker {
    static var url: String? { environment("OVERTIME_TEST_AMQP_URL") }
    static var isThere: Bool { url != nil }
    static var control: String? { environment("OVERTIME_TEST_RABBITMQCTL") }
    static var hasControl: Bool { isThere && control != nil }

    static let noBroker: Comment = "set OVERTIME_TEST_AMQP_URL to a broker's URL"
    static let noControl: Comment = "set OVERTIME_TEST_RABBITMQCTL to the rabbitmqctl of that broker"

    private static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    static func endpoint() throws -> Endpoint {
        try Endpoint(url: #require(url))
    }

    /// A configuration that is impatient enough for tests.
    static func configuration(_ name: String, endpoint: Endpoint? = nil) throws -> LinkConfiguration {
        LinkConfiguration(
            endpoints: Endpoints(try endpoint ?? Self.endpoint()), connectionName: name,
            backoff: Backoff(first: .milliseconds(20), maximum: .milliseconds(400)))
    }

    /// Names that no other test and no other run uses.
    static func unique(_ name: String) -> String {
        "test.\(getpid()).\(UInt32.random(in: 0 ... .max)).\(name)"
    }

    static func short(_ name: String) throws -> ShortString {
        try #require(ShortString(unique(name)))
    }

    /// Runs rabbitmqctl and returns what it prints.
    static func runControl(_ arguments: String) async throws -> String {
        let command = try #require(control) + " -q " + arguments
        return try await aside { try run(command) }
    }

    private static func run(_ command: String) throws -> String {
        let pipe = try #require(popen(command, "r"))
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = fread(&buffer, 1, buffer.count, pipe)
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        #expect(pclose(pipe) == 0, "\(command)")
        return String(decoding: output, as: UTF8.self)
    }

    /// A queue that goes away by itself, a durable one after a minute without use.
    static func queue(_ name: ShortString, arguments: Table = [:], durable: Bool = false) -> DeclarationStep {
        var arguments = arguments
        arguments["x-expires"] = .int32(60_000)
        return DeclarationStep(
            .queue(name: name, durable: durable, exclusive: false, autoDelete: !durable, arguments: arguments)
        )
    }

    /// Runs a link for as long as `body` takes.
    static func withLink(
        _ configuration: LinkConfiguration, _ channels: @escaping @Sendable () -> [ChannelPlan],
        _ body: (Link, EventLog) async throws -> Void
    ) async throws {
        let log = EventLog()
        let link = Link(configuration: configuration, channels: channels, observer: log.observer)
        link.start()
        do {
            try await body(link, log)
        } catch {
            try await link.stopAside()
            throw error
        }
        try await link.stopAside()
        #expect(log.all.last == .stopped)
    }
}

/// Runs what blocks on a thread of its own, because tests share a few.
func aside<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        do {
            _ = try OwnedThread.start(name: "test-aside", stackBytes: 1 << 20) {
                continuation.resume(with: Result(catching: body))
            }
        } catch {
            continuation.resume(throwing: error)
        }
    }
}

extension LinkConfiguration {
    /// The one node of most tests.
    var endpoint: Endpoint {
        get { endpoints.all[0] }
        set { endpoints = Endpoints(newValue) }
    }
}

extension Link {
    /// Stops the link and tells how long it took.
    @discardableResult
    func stopAside() async throws -> Duration {
        try await aside { [self] in ContinuousClock().measure { stop() } }
    }
}
