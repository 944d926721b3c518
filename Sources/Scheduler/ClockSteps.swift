/// Notices that the wall clock was stepped or the machine suspended: it then moved by another amount than the
/// monotonic clock.
struct ClockSteps {
    private var last: (wall: Int64, uptime: Int64)?
    private static let tolerance: Int64 = 500

    /// The step since the last look in milliseconds, forward positive; nil where there was none.
    mutating func look(wall: Int64, uptime: Int64) -> Int64? {
        defer { last = (wall, uptime) }
        guard let last else { return nil }
        let step = (wall - last.wall) - (uptime - last.uptime)
        return abs(step) >= Self.tolerance ? step : nil
    }
}
