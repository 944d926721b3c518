import Service

/// The two clocks of one process, over the universe's time.
///
/// `@unchecked Sendable` because a simulation runs on one thread; the protocol asks for it.
final class ProcessClock: WallClock, @unchecked Sendable {
    private static let epoch: Int64 = 1_795_953_600_000

    private let timeline: Timeline
    private let driftPerMillion: Int64
    /// What steps and the first setting add to the wall clock.
    var offset: Int64
    /// Milliseconds that the monotonic clock stood still.
    var missed: Int64 = 0
    /// Milliseconds that the present turn has already taken.
    var lag: Int64 = 0

    init(timeline: Timeline, offset: Int64, driftPerMillion: Int64) {
        self.timeline = timeline
        self.offset = offset
        self.driftPerMillion = driftPerMillion
    }

    func nowMilliseconds() -> Int64 {
        let time = timeline.now + lag
        return Self.epoch + time + time * driftPerMillion / 1_000_000 + offset
    }

    var uptime: Int64 { 1_000_000 + timeline.now + lag - missed }
}
