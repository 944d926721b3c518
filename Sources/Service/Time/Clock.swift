import Glibc

/// The time of day as data, so that tests can say what time it is.
package protocol WallClock: Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    func nowMilliseconds() -> Int64
}

/// The machine's own clock.
package struct SystemClock: WallClock {
    package init() {}

    package func nowMilliseconds() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }
}

/// The clock for waiting: it never steps, and says nothing about the time of day.
package enum MonotonicClock {
    package static func nanoseconds() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    package static func milliseconds() -> Int64 {
        Int64(nanoseconds() / 1_000_000)
    }

    /// Lets time pass without holding a thread; ends at once where the task is cancelled.
    package static func pause(_ span: Duration) async {
        try? await Task.sleep(for: span, clock: .continuous)
    }
}
