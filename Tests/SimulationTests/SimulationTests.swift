import Simulation
import Testing

/// Some hundred seeds of the simulation; `make soak` runs as many as asked.
struct SimulationTests {
    private static let seeds: UInt64 = 300

    /// Each of these once found something wrong; what it was stands in the commit that mended it.
    private static let regressions: [UInt64] = [24, 98, 120, 140, 1_983, 2_795]

    @Test("nothing is lost, doubled, early or out of order, whatever fails", arguments: 0..<4)
    func seeds(part: UInt64) throws {
        for seed in 1...Self.seeds where seed % 4 == part { try Self.check(seed) }
    }

    @Test("seeds that once failed", arguments: regressions)
    func regression(seed: UInt64) throws { try Self.check(seed) }

    @Test("a seed is the same run each time", arguments: [7, 77, 240] as [UInt64])
    func replays(seed: UInt64) throws {
        let first = try Simulation.run(seed: seed)
        let second = try Simulation.run(seed: seed, keepingSteps: 60)
        #expect(first.digest == second.digest)
        #expect(first.steps == second.steps)
        #expect(first.faults == second.faults)
    }

    /// One seed; a failing one is run again for its last steps.
    private static func check(_ seed: UInt64) throws {
        let result = try Simulation.run(seed: seed)
        guard !result.violations.isEmpty else { return }
        let steps = try Simulation.run(seed: seed, keepingSteps: 60).trace.joined(separator: "\n")
        Issue.record(
            """
            seed \(seed) (replay it with: make soak SEED=\(seed))
            \(steps)
            \(result.violations.joined(separator: "\n"))
            """)
    }
}
