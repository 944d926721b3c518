/// Everything that a simulation draws, from one seed: the same seed, the same run, in every process.
///
/// SplitMix64; its results do not depend on the standard library's ways of drawing.
struct Dice: RandomNumberGenerator {
    private(set) var state: UInt64

    init(seed: UInt64) {
        state = seed
        // Neighbouring seeds must not begin alike.
        for _ in 0..<4 { _ = next() }
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func chance(_ probability: Double) -> Bool {
        guard probability > 0 else { return false }
        return Double(next() >> 11) / Double(1 << 53) < probability
    }

    mutating func int(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + Int(next() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    mutating func span(_ range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(next() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    /// A span that is mostly near the lower bound: each power of two of its length is as likely as the next.
    mutating func skewed(_ range: ClosedRange<Int64>) -> Int64 {
        let width = UInt64(range.upperBound - range.lowerBound) + 1
        let bits = 64 - width.leadingZeroBitCount
        let most = min(width, UInt64(1) << UInt64(int(0...max(bits, 1))))
        return range.lowerBound + Int64(next() % most)
    }

    mutating func one<Value>(of choices: [Value]) -> Value { choices[int(0...choices.count - 1)] }
}
