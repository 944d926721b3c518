internal import CRabbitMQ
internal import Glibc

/// An eventfd: the one thing that a thread can wait for together with a socket.
final class WakeUp: Sendable {
    let descriptor: Int32

    /// `nil` if the process has no descriptor left.
    init?() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        if descriptor < 0 { return nil }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    /// Takes all signals so far; the next wait is for a later one.
    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }

    /// Waits for a signal and leaves it; `nil` waits for ever. `false` if the time ran out.
    func wait(milliseconds: Int64?) -> Bool {
        let deadline = milliseconds.map { Instant.now + $0 }
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let rest = deadline.map { Int32(clamping: max(0, $0 - Instant.now)) } ?? -1
            let result = poll(&entry, 1, rest)
            if result > 0 { return true }
            if result == 0 { return false }
            if errno != EINTR { return false }
        }
    }
}

/// Monotonic milliseconds, for waiting only.
struct Instant: Hashable, Comparable, Sendable {
    var milliseconds: Int64

    static var now: Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    static func + (instant: Instant, milliseconds: Int64) -> Instant {
        Instant(milliseconds: instant.milliseconds + milliseconds)
    }

    static func - (left: Instant, right: Instant) -> Int64 { left.milliseconds - right.milliseconds }

    static func < (left: Instant, right: Instant) -> Bool { left.milliseconds < right.milliseconds }
}
