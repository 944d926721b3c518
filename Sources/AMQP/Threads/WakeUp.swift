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
        Self.poll(descriptor, events: POLLIN, or: nil, milliseconds: milliseconds) == .ready
    }

    /// As above, but a signal of the other one ends it as well, with `false`.
    func wait(milliseconds: Int64?, or other: WakeUp) -> Bool {
        Self.poll(descriptor, events: POLLIN, or: other, milliseconds: milliseconds) == .ready
    }

    enum PollResult {
        case ready
        case signalled
        case timedOut
    }

    /// Waits for a descriptor, a signal, or the end of the time; the descriptor counts first.
    static func poll(
        _ descriptor: Int32, events: Int32, or wakeUp: WakeUp?, milliseconds: Int64?
    ) -> PollResult {
        let deadline = milliseconds.map { Instant.now + $0 }
        var entries = [pollfd(fd: descriptor, events: Int16(events), revents: 0)]
        if let wakeUp { entries.append(pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)) }
        while true {
            let rest = deadline.map { Int32(clamping: max(0, $0 - Instant.now)) } ?? -1
            let result = Glibc.poll(&entries, nfds_t(entries.count), rest)
            if result > 0 { return entries[0].revents != 0 ? .ready : .signalled }
            if result == 0 || errno != EINTR { return .timedOut }
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
