import Glibc

/// How cost grows with size, as a ratio in one run: the machine's speed and load do not count.
enum Growth {
    /// The processor time of this thread for the large size over that for the small one, least of three.
    static func ratio(small: Int, large: Int, _ work: (Int) -> Void) -> Double {
        let costs = [small, large].map { size in (0..<3).map { _ in cost { work(size) } }.min() ?? 0 }
        return costs[1] / max(costs[0], 1)
    }

    private static func cost(_ body: () -> Void) -> Double {
        let before = now()
        body()
        return now() - before
    }

    private static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
}
