import Glibc
import Service
import Simulation
import Synchronization

/// Many seeds on all processors, and what they add up to.
final class Soak: Sendable {
    fileprivate struct Totals {
        var seeds: UInt64 = 0
        var failures: [UInt64] = []
        var commands = 0
        var events = 0
        var simulatedMilliseconds: Int64 = 0
        var faults: [Fault: Int] = [:]
        var digest: UInt64 = 0
    }

    private let first: UInt64
    private let count: UInt64
    private let isCrew: Bool
    private let next: Atomic<UInt64>
    private let totals = Mutex(Totals())
    private let startedAt = MonotonicClock.milliseconds()
    /// Of so many failing seeds the last steps are shown; whoever breaks everything wants to read about the first ones.
    private static let described = 3

    init(first: UInt64, count: UInt64, isCrew: Bool) {
        self.isCrew = isCrew
        self.first = first
        self.count = count
        next = Atomic(first)
    }

    /// True where no seed failed.
    func run() -> Bool {
        let processors = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        let threads = (0..<processors).compactMap { number in
            try? WorkThread(name: "soak-\(number)", stackBytes: 8 << 20) { self.work() }
        }
        if threads.isEmpty { work() }
        for thread in threads { thread.join() }
        return totals.withLock { $0.failures.isEmpty && $0.seeds == count }
    }

    private func work() {
        while true {
            let seed = next.wrappingAdd(1, ordering: .relaxed).oldValue
            guard seed - first < count else { return }
            guard let result = try? Simulation.run(seed: seed, isCrew: isCrew) else { return }
            let failures = totals.withLock { totals in
                totals.add(result)
                return totals.failures.count
            }
            if !result.violations.isEmpty, failures <= Self.described { describe(result) }
        }
    }

    /// Runs a failing seed once more, for its last steps.
    private func describe(_ result: Simulation.Result) {
        let steps = (try? Simulation.run(seed: result.seed, isCrew: isCrew, keepingSteps: 60))?.trace ?? []
        let lines =
            steps.map { "    \($0)" }
            + result.violations.prefix(5).map { "soak: seed \(result.seed) fails: \($0)" }
            + ["soak: replay it with: make soak SEED=\(result.seed)"]
        print(lines.joined(separator: "\n"))
        fflush(nil)
    }

    var summary: String {
        totals.withLock { totals in
            let seeds = max(Int(totals.seeds), 1)
            let seconds = (MonotonicClock.milliseconds() - startedAt) / 1_000
            let faults = Fault.allCases.map { "\($0.rawValue) \(totals.faults[$0] ?? 0)" }
            let failed =
                totals.failures.isEmpty
                ? ""
                : " (seeds \(totals.failures.sorted().prefix(20).map { "\($0)" }.joined(separator: " ")))"
            return """
                soak: \(totals.seeds) seeds from \(first), \(totals.failures.count) failures\(failed), \
                \(totals.commands / seeds) commands/seed, \(totals.events / seeds) events/seed, \
                \(totals.simulatedMilliseconds / 3_600_000) h simulated in \(seconds) s, \
                digest \(String(totals.digest, radix: 16)), \
                faults injected: \(faults.joined(separator: ", "))
                """
        }
    }

    /// Runs one seed, with its steps.
    static func replay(_ seed: UInt64, isCrew: Bool, showing steps: Int) -> Bool {
        guard let result = try? Simulation.run(seed: seed, isCrew: isCrew, keepingSteps: steps) else {
            return false
        }
        for step in result.trace { print(step) }
        for violation in result.violations { print("seed \(seed): \(violation)") }
        if result.violations.isEmpty { print("seed \(seed): no violation") }
        return result.violations.isEmpty
    }
}

extension Soak.Totals {
    fileprivate mutating func add(_ result: Simulation.Result) {
        seeds += 1
        commands += result.commands
        events += result.events
        simulatedMilliseconds += result.simulatedMilliseconds
        // In any order of the threads the same.
        digest ^= result.digest
        faults.merge(result.faults, uniquingKeysWith: +)
        if !result.violations.isEmpty { failures.append(result.seed) }
    }
}
