import class Foundation.ProcessInfo

/// A small random generator (SplitMix64) whose whole run follows from its seed.
struct Dice {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func roll() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0 ..< bound.
    mutating func below(_ bound: Int) -> Int { Int(roll() % UInt64(max(bound, 1))) }

    /// A number of the range; its ends are as likely as the rest.
    mutating func within(_ range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(below(Int(range.upperBound - range.lowerBound) + 1))
    }

    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    mutating func pick<Choice>(_ choices: [Choice]) -> Choice { choices[below(choices.count)] }
}

enum TestSeed {
    /// `OVERTIME_TEST_SEED` if it is set to a number, else a drawn one.
    static let value: UInt64 =
        ProcessInfo.processInfo.environment["OVERTIME_TEST_SEED"].flatMap { UInt64($0) }
        ?? UInt64.random(in: 1...999_999_999)
}
