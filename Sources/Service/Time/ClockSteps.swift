/// Notices that the wall clock was stepped or the machine suspended: it then moved by another amount than the
/// monotonic clock.
package struct ClockSteps: Sendable {
    private var last: (wall: Int64, uptime: Int64)?
    package private(set) var count = 0
    private static let tolerance: Int64 = 500

    package init() {}

    /// The step since the last look in milliseconds, forward positive; nil where there was none.
    package mutating func look(wall: Int64, uptime: Int64) -> Int64? {
        defer { last = (wall, uptime) }
        guard let last else { return nil }
        let step = (wall - last.wall) - (uptime - last.uptime)
        guard abs(step) >= Self.tolerance else { return nil }
        count += 1
        return step
    }
}
