/// How long to wait before the next try: doubling, bounded, with jitter, so that many processes do not return at once.
package struct Backoff: Sendable, Equatable {
    package let firstMilliseconds: Int64
    package let longestMilliseconds: Int64
    /// Tries since the last success.
    package private(set) var attempts = 0

    /// A first wait below one millisecond would spin, so it is raised to one.
    package init(firstMilliseconds: Int64, longestMilliseconds: Int64) {
        self.firstMilliseconds = max(1, firstMilliseconds)
        self.longestMilliseconds = max(self.firstMilliseconds, longestMilliseconds)
    }

    /// The next wait: between half of the doubled time and all of it, never above the longest.
    package mutating func next(using generator: inout some RandomNumberGenerator) -> Int64 {
        let full = fullMilliseconds
        attempts += 1
        return Int64.random(in: max(1, full / 2)...full, using: &generator)
    }

    /// The next wait with the system's randomness.
    package mutating func next() -> Int64 {
        var generator = SystemRandomNumberGenerator()
        return next(using: &generator)
    }

    /// To be called after a success: the next failure starts from the first wait again.
    package mutating func reset() {
        attempts = 0
    }

    private var fullMilliseconds: Int64 {
        var full = firstMilliseconds
        for _ in 0..<min(attempts, 62) {
            if full >= longestMilliseconds - full { return longestMilliseconds }
            full *= 2
        }
        return full
    }
}
