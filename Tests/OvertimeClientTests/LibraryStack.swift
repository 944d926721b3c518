import Foundation
import OvertimeClient
import Synchronization
import Testing

/// A worker and a scheduler, of the program that was built together with these tests, with a prefix and a store of their own.
final class LibraryStack {
    static var url: String? { ProcessInfo.processInfo.environment["OVERTIME_TEST_AMQP_URL"] }
    static var isThere: Bool { url != nil && program != nil }
    static let missing: Comment =
        "set OVERTIME_TEST_AMQP_URL to a broker's URL, and build the program: scripts/test does both"

    /// Beside the executable of these tests.
    private static var program: URL? {
        let here = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        return [here, URL(filePath: #filePath).appending(path: "../../../.build/debug").standardized]
            .map { $0.appending(path: "overtime") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    let url: String
    let prefix: String
    private let directory: URL
    private var processes: [Process] = []

    init(services: [String] = ["worker", "scheduler"]) throws {
        url = try #require(Self.url)
        prefix = "test.\(getpid()).\(Overtime.newKey())"
        directory = FileManager.default.temporaryDirectory.appending(path: prefix)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        for service in services { try start(service) }
    }

    func start(_ service: String, environment more: [String: String] = [:]) throws {
        let process = Process()
        guard let program = Self.program else { throw CocoaError(.fileNoSuchFile) }
        process.executableURL = program
        process.arguments = [service]
        process.currentDirectoryURL = directory
        process.environment = ProcessInfo.processInfo.environment.merging(
            [
                "OVERTIME_AMQP_URL": url, "OVERTIME_AMQP_PREFIX": prefix,
                "OVERTIME_STORE": "sqlite:\(directory.path)/overtime.db", "OVERTIME_LOG_FORMAT": "json",
            ].merging(more) { $1 }
        ) { $1 }
        let log = directory.appending(path: "\(service).log")
        try Data().write(to: log)
        let output = try FileHandle(forWritingTo: log)
        process.standardOutput = output
        process.standardError = output
        try process.run()
        processes.append(process)
    }

    func configuration(_ component: String = "client") throws -> Overtime.Configuration {
        var configuration = try Overtime.Configuration(url: url)
        configuration.prefix = prefix
        configuration.component = component
        configuration.timeout = .seconds(20)
        return configuration
    }

    /// A client whose first answer shows that the worker serves.
    func client() async throws -> Overtime {
        let client = try await Overtime.connect(configuration())
        _ = try await client.rooms()
        return client
    }

    /// Ends the processes; what they made on the broker goes with it.
    func stop() {
        for process in processes.reversed() {
            process.terminate()
            process.waitUntilExit()
        }
        processes = []
        try? FileManager.default.removeItem(at: directory)
    }

    deinit { for process in processes { kill(process.processIdentifier, SIGKILL) } }
}

/// Runs what a test does with a stack, and ends the stack whatever happens.
func withStack(
    services: [String] = ["worker", "scheduler"], _ body: (LibraryStack, Overtime) async throws -> Void
) async throws {
    let stack = try LibraryStack(services: services)
    let client = try await stack.client()
    do {
        try await body(stack, client)
    } catch {
        await client.close()
        stack.stop()
        throw error
    }
    await client.close()
    stack.stop()
}

/// The first of a sequence that fits, within so many seconds; says what was waited for.
func first<Value: Sendable>(
    _ what: Comment, of events: Overtime.Events, within seconds: Int = 20,
    _ fits: @escaping @Sendable (Overtime.Notice) -> Value?
) async throws -> Value {
    let found = await within(seconds) {
        for await notice in events {
            if let value = fits(notice) { return value as Value? }
        }
        return nil
    }
    return try #require(found.flatMap { $0 }, what)
}

/// The result, or nil once the time is up.
func within<Value: Sendable>(
    _ seconds: Int, _ body: @escaping @Sendable () async -> Value
) async -> Value? {
    await withTaskGroup(of: Value?.self) { group in
        group.addTask { await body() }
        group.addTask {
            try? await Task.sleep(for: .seconds(seconds))
            return nil
        }
        defer { group.cancelAll() }
        return await group.next().flatMap { $0 }
    }
}

/// A list that closures share.
final class Mutexed<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) { mutex = Mutex(value) }

    var value: Value { mutex.withLock { $0 } }

    func change<Result: Sendable>(_ body: (inout sending Value) -> sending Result) -> Result {
        mutex.withLock(body)
    }
}

extension Mutexed where Value: RangeReplaceableCollection, Value.Element: Sendable {
    /// - Returns: how many there are then.
    @discardableResult
    func append(_ element: Value.Element) -> Int {
        change { list in
            list.append(element)
            return list.count
        }
    }
}

extension Overtime.Notice {
    var event: Overtime.Event? { if case .event(let event) = self { event } else { nil } }
}
