import AMQP
import Contract
import HTTP
import OvertimeClient
import RoomCore
import Service

extension ProgramCommand {
    static let check = ProgramCommand(
        name: "check", summary: "say whether broker, rights, topology, store, worker and clock are in order",
        usage: "[OPTIONS]",
        details: """
            Looks at everything Overtime needs and says line by line what is in order and what is not, with the remedy. Changes
            nothing. Exits with 0 where all is well, with 1 where something is not.

            With --health it asks only the service that listens on the configured HTTP address (http, OVERTIME_HTTP) whether it
            is ready, and prints the answer: for the health check of a container.
            """,
        options: [
            .timeout, Option("health", nil, "ask the configured HTTP address's /readyz, and nothing else"),
        ]
    ) { options throws(UsageError) in
        try refuseArguments(options)
        let deadline = MonotonicClock.milliseconds() + (try timeout(options))
        let composition = Composition.load(options)
        if options.has("health") { return checkHealth(composition.configuration.http, until: deadline) }
        var checklist = Checklist()
        checklist.good("configuration", "read, nothing is wrong")
        switch TopologyCheck.run(composition, until: deadline) {
        case .failure(let failure):
            checklist.bad("broker", failure.description)
        case .success(let found):
            checklist.good("broker", "\(composition.endpoints), RabbitMQ \(found.version)")
            checkNodes(composition, connected: found.node, &checklist, until: deadline)
            checklist.add(found)
            checkWorker(composition, &checklist, until: deadline)
        }
        return checklist.isGood ? .ok : .refused
    }

    /// The nodes of a cluster one by one: a connection takes whichever answers, and hides the others.
    private static func checkNodes(
        _ composition: Composition, connected: String, _ checklist: inout Checklist, until deadline: Int64
    ) {
        guard composition.endpoints.all.count > 1 else { return }
        for node in composition.endpoints.all {
            let isConnected = node.address == connected
            switch NodeCheck.run(composition, node, until: deadline) {
            case .success(let version):
                checklist.good(
                    "node",
                    "\(node.address), RabbitMQ \(version)" + (isConnected ? ", asked for all else" : ""))
            case .failure(let error):
                checklist.bad("node", "\(node.address): \(error)")
            }
        }
        let isReplicated = composition.topology.isCluster
        checklist.add(
            "cluster",
            isReplicated
                ? "amqp.cluster is set: ticks and queries have quorum queues"
                : "amqp.cluster is false: ticks and queries are away with the node that they are on",
            isGood: isReplicated)
    }

    private static func checkHealth(_ address: Configuration.HTTPAddress?, until deadline: Int64)
        -> ProcessExit
    {
        guard let address else {
            Output.error("http is off: set it (OVERTIME_HTTP) to the address of the service that is asked")
            return .refused
        }
        switch ReadinessQuestion.ask(address, until: deadline) {
        case .failure(let failure):
            Output.error(failure.reason)
            return .refused
        case .success(let answer):
            for line in answer.body.split(separator: "\n") {
                Output.line(PrintableText.escaped(String(line)))
            }
            return answer.status == 200 ? .ok : .refused
        }
    }

    private static func checkWorker(
        _ composition: Composition, _ checklist: inout Checklist, until deadline: Int64
    ) {
        let clock = SystemClock()
        let sent = clock.nowMilliseconds()
        let answer = composition.asking("check") { overtime async throws(OvertimeError) in
            let left = Duration.milliseconds(max(deadline - MonotonicClock.milliseconds(), 0))
            return try await overtime.ask(.state, timeout: left)
        }
        switch answer {
        case .failure(.brokerRefuses(let reason)):
            checklist.bad("rights", "own queues and the exchange of queries: \(reason)")
        case .failure(let failure):
            checklist.bad("worker", failure.description)
        case .success(let body):
            let received = clock.nowMilliseconds()
            checklist.good("rights", "may declare queues of its own and publish queries")
            guard let state = WorkerState.decode(body) else {
                return checklist.bad("worker", "its answer cannot be read: is it of another version?")
            }
            let phase = state["phase"] ?? "?"
            let who = "pid \(state["pid"] ?? "?") on \(state["host"] ?? "?"), \(phase)"
            let blocked = state["blocked"] == "yes" ? ", blocked by the broker" : ""
            checklist.add("worker", who + blocked, isGood: phase == "serving" && blocked.isEmpty)
            let rooms = state["liveRooms"].map {
                "\($0) live sessions, \(state["outbox"] ?? "?") events unpublished"
            }
            checklist.add(
                "store", state["store"] == "ok" ? rooms ?? "ok" : "failing: see the worker's log",
                isGood: state["store"] == "ok")
            check(state.members, of: state["shards"].flatMap { Int64($0) } ?? 0, &checklist)
            let server = state.serverTime.milliseconds
            let isClose = server >= sent - 1_000 && server <= received + 1_000
            checklist.add(
                "clock",
                isClose
                    ? "within a second of the worker's (clock steps seen there: \(state["clockSteps"] ?? "?"))"
                    : "\(state.members.isEmpty ? "the worker's" : "the store's") clock is \(server - received) ms ahead of this host's (\(HostName.current)): keep both with NTP",
                isGood: isClose)
        }
    }

    /// A line for each of several workers: the shards that it consumes, and its clock.
    private static func check(
        _ members: [WorkerState.Member], of count: Int64, _ checklist: inout Checklist
    ) {
        guard !members.isEmpty else { return }
        for member in members {
            let host = PrintableText.escaped(member.host)
            let list = member.shards.map { "\($0)" }.joined(separator: ", ")
            let shards = list.isEmpty ? "no shard" : "shards \(list)"
            // What fits into no clock is off as well.
            let isClose = (-1_000...1_000).contains(member.clockOffset)
            let clock =
                isClose
                ? "" : "; its clock is \(member.clockOffset) ms behind the store's: keep \(host) with NTP"
            checklist.add(
                "worker", "pid \(member.pid) on \(host) consumes \(shards)\(clock)", isGood: isClose)
        }
        let consumed = Set(members.flatMap(\.shards))
        let idle = (0..<max(count, 0)).filter { !consumed.contains($0) }
        guard !idle.isEmpty else { return }
        let list = idle.map { "\($0)" }.joined(separator: ", ")
        checklist.bad(
            "shards",
            "consumed by no worker: \(list); where that lasts longer than 10 s, see the workers' logs")
    }
}

/// The lines of a check.
struct Checklist {
    private(set) var isGood = true

    mutating func add(_ name: String, _ text: String, isGood good: Bool) {
        let mark = good ? Output.colour("ok  ", .green) : Output.colour("FAIL", .red)
        Output.line("\(mark)  \(EventText.pad(name, 14)) \(text)")
        if !good { isGood = false }
    }

    mutating func good(_ name: String, _ text: String) { add(name, text, isGood: true) }
    mutating func bad(_ name: String, _ text: String) { add(name, text, isGood: false) }

    mutating func add(_ found: TopologyCheck.Found) {
        if found.missing.isEmpty { good("topology", "\(found.present) objects are there") }
        for (name, error) in found.missing { bad("topology", "\(name): \(error)") }
        for name in found.leftovers {
            bad("topology", "\(name) is left over from another number of shards: empty and delete it")
        }
    }
}
