import Contract
import RoomCore
import Worker

/// What a seed is about: sizes, speeds, and which faults it knows. A run with few kinds of fault gets further than one
/// in which everything always fails, so each seed has a selection of its own.
struct Scenario: CustomStringConvertible {
    let topology: Topology
    let schedulers: Int
    /// More than one share a store, and the commands are spread over shards.
    let workers: Int
    let rooms: [RoomID]
    let users: [UserID]
    let commands: Int
    /// Milliseconds during which commands come and faults happen.
    let duration: Int64
    /// Every command has an id, so that the whole history can be decided again.
    let isReplayable: Bool
    /// Kinds of fault, with how much of each: 1 is usual.
    let faults: [Fault: Double]
    let worker: WorkerSettings
    let outboxLimits: OutboxPublisher.Limits
    /// Milliseconds by which the clocks differ from the universe's at the start, in parts per million how fast.
    let skews: [Int64]
    let drifts: [Int64]

    static let operatorName = "backend"
    static let poison: RoomID = "poison"

    /// - Parameter isCrew: several workers. Drawn last, so that one worker's seeds stay what they were.
    init(dice: inout Dice, isCrew: Bool) throws {
        let logMaxAge = dice.chance(0.5) ? "7D" : nil
        let plain = try Topology(logMaxAge: logMaxAge)
        schedulers = dice.one(of: [1, 1, 2, 2, 3])
        rooms = (1...dice.int(1...5)).map { RoomID("room-\($0)") }
        users = ["ann", "ben", "cy", "dot"]
        commands = dice.int(30...140)
        duration = dice.span(60_000...240_000)
        isReplayable = dice.chance(0.6)
        var faults: [Fault: Double] = [:]
        let share = dice.one(of: [0.0, 0.15, 0.3, 0.5, 0.8])
        for fault in Fault.allCases where dice.chance(share) {
            faults[fault] = dice.one(of: [0.3, 1, 1, 3])
        }
        if dice.chance(0.9) { faults[.poisonCommand] = nil }
        self.faults = faults
        var settings = WorkerSettings(
            topology: plain,
            rooms: RoomSettings(adhoc: dice.chance(0.3), duration: .seconds(dice.span(20...80))),
            source: "overtime", operators: [Self.operatorName], idRetention: .minutes(60 * 24 * 60),
            roomRetention: .minutes(90 * 24 * 60))
        settings.batchSize = dice.one(of: [1, 2, 5, 512, 512])
        settings.prefetch = dice.one(of: [1, 3, 10, 2_048, 2_048])
        settings.eventBound = dice.one(of: [3, 20, 20_000, 20_000])
        var limits = OutboxPublisher.Limits()
        limits.inFlight = dice.one(of: [1, 4, 4_096, 4_096])
        outboxLimits = limits
        let isSkewed = dice.chance(0.4)
        skews = (0..<4).map { _ in isSkewed ? dice.span(-90_000...90_000) : 0 }
        drifts = (0..<4).map { _ in isSkewed ? dice.span(-200...200) : 0 }
        workers = isCrew ? dice.int(2...4) : 1
        topology = isCrew ? try Topology(shards: dice.int(2...6), logMaxAge: logMaxAge) : plain
        settings.topology = topology
        worker = settings
    }

    /// How much of a fault there is; 0 for none.
    func rate(_ fault: Fault) -> Double { faults[fault] ?? 0 }

    var description: String {
        let faults = Fault.allCases.compactMap { fault in self.faults[fault].map { "\(fault.rawValue) \($0)" }
        }
        return
            "\(rooms.count) rooms, \(workers) workers, \(topology.shards) shards, \(schedulers) schedulers, batch \(worker.batchSize), prefetch \(worker.prefetch), "
            + "event bound \(worker.eventBound), in flight \(outboxLimits.inFlight), "
            + "\(isReplayable ? "ids only, " : "")skews \(skews); \(faults.joined(separator: ", "))"
    }
}
