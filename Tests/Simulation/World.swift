import AMQP
import RoomCore
import Store

/// Everything that one run shares: its time, its dice, its history and how much is to go wrong.
final class World {
    let scenario: Scenario
    let timeline = Timeline()
    let history: History
    var dice: Dice
    /// What every call of the store fails with; nil while it works.
    var storeOutage: StoreError?
    /// No faults any more: everything must converge.
    private(set) var isCalm = false
    private(set) var calmAt: Int64 = .max

    init(seed: UInt64, isCrew: Bool, keepingSteps kept: Int) throws {
        var dice = Dice(seed: seed)
        scenario = try Scenario(dice: &dice, isCrew: isCrew)
        self.dice = dice
        history = History(timeline: timeline, keepingSteps: kept)
    }

    var now: Int64 { timeline.now }

    /// From then on everything is on time: retries are at most 30 s apart; a step of the worker's clock, and what happened
    /// while an exchange was gone, are found with the snapshot that is taken every 30 s.
    var settledAt: Int64 {
        guard isCalm else { return .max }
        let isFoundLate = scenario.rate(.clockStep) > 0 || scenario.rate(.deletedExchange) > 0
        return calmAt + (isFoundLate ? 80_000 : 45_000)
    }

    func calm() {
        isCalm = true
        calmAt = now
        history.note("--- calm")
    }

    /// Whether a fault happens here: `usual` is its probability where the scenario has it at its usual rate.
    func strikes(_ fault: Fault, usual: Double) -> Bool {
        guard !isCalm else { return false }
        return dice.chance(usual * scenario.rate(fault))
    }

    /// How long something takes on the wire: mostly next to nothing.
    func latency() -> Int64 { isCalm ? dice.span(0...2) : dice.skewed(0...40) }
}

extension Message {
    /// What a client or a scheduler calls it.
    var name: String {
        let id = properties.correlationID?.description ?? properties.messageID?.description ?? "-"
        return "\(exchange)/\(routingKey) \(id)"
    }
}
