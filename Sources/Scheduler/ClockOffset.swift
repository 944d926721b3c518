/// How far the worker's clock is ahead of this one, as far as answers bound it.
///
/// Each answer bounds it: `serverTime − received ≤ offset ≤ serverTime − sent`. The last bounds are intersected and
/// the value nearest zero is used, so that a slow answer never shifts clocks that are equal.
struct ClockOffset {
    private var bounds: [ClosedRange<Int64>] = []
    private static let kept = 8

    /// Takes one answer; all in milliseconds of the respective clock. True where it contradicts the one before: a clock
    /// was stepped in between, and perhaps not for long.
    mutating func learn(serverTime: Int64, sent: Int64, received: Int64) -> Bool {
        guard received >= sent else { return false }
        let bound = (serverTime - received)...(serverTime - sent)
        let contradicts = bounds.last.map { !$0.overlaps(bound) } ?? false
        bounds.append(bound)
        if bounds.count > Self.kept { bounds.removeFirst() }
        return contradicts
    }

    /// Forgets everything: a clock was stepped.
    mutating func reset() { bounds = [] }

    /// Milliseconds to add to this clock.
    var milliseconds: Int64 {
        guard var range = bounds.last else { return 0 }
        for bound in bounds.reversed() {
            let low = max(range.lowerBound, bound.lowerBound)
            let high = min(range.upperBound, bound.upperBound)
            // Older answers that contradict the newer ones are of another time.
            guard low <= high else { break }
            range = low...high
        }
        return range.contains(0) ? 0 : (range.lowerBound > 0 ? range.lowerBound : range.upperBound)
    }
}
