import RoomCore

/// How far the clock of a shared store is ahead of this worker's, in milliseconds.
///
/// Each answer bounds it: the store read its clock between the question and the answer. What is known is moved only as far as
/// the bounds ask, so a slow answer shifts nothing, and equal clocks stay equal.
struct StoreClock {
    private(set) var offset: Int64 = 0

    /// Takes what the store's clock said, between two readings of this worker's.
    mutating func learn(_ store: Instant, askedAt before: Int64, answeredAt after: Int64) {
        let (least, first) = store.milliseconds.subtractingReportingOverflow(after)
        let (most, second) = store.milliseconds.subtractingReportingOverflow(before)
        // This worker's clock was set back meanwhile: the next answer tells.
        guard !first, !second, least <= most else { return }
        offset = min(max(offset, least), most)
    }
}
