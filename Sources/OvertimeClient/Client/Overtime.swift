package import AMQP
package import Contract
import Service

/// A client of Overtime, which keeps the clock of video rooms: publishes commands and hears events.
///
/// ```swift
/// let overtime = try await Overtime.connect("amqp://guest:guest@127.0.0.1:5672/%2f")
/// try await overtime.open("demo", .init(duration: .seconds(3600)))
/// try await overtime.join("demo", user: "alice", role: .moderator)
/// do {
///     let reply = try await overtime.extend("demo", user: "alice")
///     print("ends at \(reply.result.endsAt)")
/// } catch .refused(let refusal) where refusal.reason == .windowNotOpen {
///     print("the window opens at \(refusal.opensAt, default: "?")")
/// }
/// ```
///
/// One client serves a whole program: its calls may be made from any number of tasks at once, and share one connection that
/// comes back by itself. A call waits for its answer, over lost connections too, until its time is up; every command carries an
/// idempotency key, so whatever was published twice is carried out once. Overtime trusts its publishers: who a
/// user is, the program that calls has to have made sure of.
public final class Overtime: Sendable {
    let topology: Topology
    let eventsConnection: LinkConfiguration
    let eventsComponent: String
    /// How long a call waits where it does not say.
    let timeout: Duration
    let caller: Caller
    let roster = Roster()
    let desk = RoomDesk()

    /// - Parameters:
    ///   - eventsConnection: nil for the same as that of commands; so with `eventsComponent`.
    package init(
        connection: LinkConfiguration, eventsConnection: LinkConfiguration? = nil, topology: Topology,
        component: String, eventsComponent: String? = nil, timeout: Duration
    ) {
        self.topology = topology
        self.eventsConnection = eventsConnection ?? connection
        self.eventsComponent = eventsComponent ?? component
        self.timeout = timeout
        caller = Caller(connection: connection, topology: topology, component: component)
    }

    /// A client that connects when it is first used: calls and sequences of events each need only the rights of their own.
    ///
    /// - Throws: `malformed`.
    public convenience init(_ configuration: Configuration) throws(OvertimeError) {
        self.init(
            connection: configuration.connection, eventsConnection: configuration.eventsConnection,
            topology: try configuration.topology(), component: configuration.component,
            eventsComponent: configuration.eventsComponent, timeout: configuration.timeout)
    }

    /// Connects, logs in and makes ready for calls, so that what is wrong is known at once.
    ///
    /// - Throws: `malformed`, `unreachable` after the configuration's time-out, `brokerRefuses`, `cancelled`.
    public static func connect(_ configuration: Configuration) async throws(OvertimeError) -> Overtime {
        let client = try Overtime(configuration)
        do throws(OvertimeError) {
            try await client.caller.ready(timeout: configuration.timeout)
        } catch {
            await client.close()
            throw error
        }
        return client
    }

    /// Connects by a URL, all else being the default; see `connect` with a configuration.
    public static func connect(_ url: String) async throws(OvertimeError) -> Overtime {
        try await connect(Configuration(url: url))
    }

    /// Fails the calls under way with `closed`, ends rooms and sequences of events, and disconnects: takes at most two seconds.
    /// A client that is given up without it does the same in the background.
    public func close() async {
        let (caller, feeds) = (caller, roster.requestClose())
        caller.requestClose()
        await offPool {
            caller.close()
            for feed in feeds { feed.close() }
        }
    }

    deinit { roster.requestClose() }

    /// A key that no other command has.
    public static func newKey() -> String { RandomToken.make() }
}

/// Runs what blocks on a thread of its own, so that the tasks' few threads stay free.
func offPool(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        do throws(WorkThread.Failure) {
            try WorkThread.detached(name: "overtime-close") {
                body()
                continuation.resume()
            }
        } catch {
            body()
            continuation.resume()
        }
    }
}
