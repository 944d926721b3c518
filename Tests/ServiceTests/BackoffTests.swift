import Testing

@testable import Service

struct BackoffTests {
    /// SplitMix64: the same waits in every run. (A generator of constant bits would never end `Int64.random`.)
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var bits = state
            bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
            bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
            return bits ^ (bits >> 31)
        }
    }

    @Test(
        "waits double up to the longest and stay between half and whole",
        arguments: [1 as UInt64, 2, 3, 4])
    func bounds(seed: UInt64) {
        var generator = Seeded(state: seed)
        var backoff = Backoff(firstMilliseconds: 100, longestMilliseconds: 10_000)
        for full: Int64 in [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000] {
            #expect((full / 2...full).contains(backoff.next(using: &generator)))
        }
        for _ in 0..<1000 { #expect((5000...10_000).contains(backoff.next(using: &generator))) }
        backoff.reset()
        #expect((50...100).contains(backoff.next(using: &generator)))
        #expect(backoff.attempts == 1)
    }

    @Test("absurd bounds neither spin nor overflow")
    func absurd() {
        var none = Backoff(firstMilliseconds: 0, longestMilliseconds: -1)
        var huge = Backoff(firstMilliseconds: .max, longestMilliseconds: .max)
        var growing = Backoff(firstMilliseconds: 3, longestMilliseconds: .max)
        for _ in 0..<200 {
            #expect(none.next() >= 1)
            #expect(huge.next() > 0)
            #expect(growing.next() > 0)
        }
    }

    @Test("tokens are lower-case base32 of 80 bits, and differ")
    func tokens() {
        let tokens = Set((0..<1000).map { _ in RandomToken.make() })
        #expect(tokens.count == 1000)
        for token in tokens {
            #expect(
                token.utf8.count == 16
                    && token.utf8.allSatisfy { "abcdefghijklmnopqrstuvwxyz234567".utf8.contains($0) })
        }
    }
}
