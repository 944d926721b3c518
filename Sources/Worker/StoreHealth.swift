/// Whether the store works, and when it is tried again.
///
/// While it fails the command channel is closed, so that deliveries do not age towards the broker's time limit; a
/// real transaction is tried after 1 s, doubling to 10 s.
struct StoreHealth {
    private(set) var isFailing = false
    /// The point of the monotonic clock from which the next try is due.
    private(set) var nextTryAt: Int64 = 0
    private var delay: Int64 = 0
    /// Until when the open channels wait for what is still settled; nil once they are closed.
    var closeChannelsAt: Int64?

    private static let firstDelay: Int64 = 1_000
    private static let longestDelay: Int64 = 10_000
    private static let settleTime: Int64 = 2_000

    mutating func fail(at uptime: Int64) {
        if !isFailing { closeChannelsAt = uptime + Self.settleTime }
        isFailing = true
        delay = delay == 0 ? Self.firstDelay : min(delay * 2, Self.longestDelay)
        nextTryAt = uptime + delay
    }

    /// The probe succeeded. The delay goes on growing until a batch succeeds as well: each time that the queues are
    /// given back counts towards the broker's delivery limit.
    mutating func recover() {
        isFailing = false
        closeChannelsAt = nil
    }

    /// A batch was committed.
    mutating func succeed() { delay = 0 }
}
