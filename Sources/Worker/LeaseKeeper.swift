import Store

/// When the lease on shards is renewed or given up, and who else held one then. Pure; times are of the monotonic clock.
///
/// A lease is only worth what the others see of it: after `Lease.length` without a renewal they take the shards, so this
/// worker does not count on them from then on either. Whoever was frozen learns at its next renewal, before it decides
/// anything, what is left to it.
struct LeaseKeeper {
    enum Step: Equatable {
        case renew, release
    }

    /// The workers at the last renewal; nil where no lease is held.
    private(set) var roster: Roster?
    /// True once this worker has been let in among the others.
    private(set) var wasHeld = false
    private var renewedAt: Int64 = 0
    private var nextAt = Int64.min
    /// When the workers last were others than before.
    private var changedAt: Int64 = 0
    private var downSince: Int64?

    /// Between two renewals while the workers change: whoever joins or goes is seen sooner by all.
    private static let shortInterval: Int64 = 1_000
    /// How long that is so after a change.
    private static let restless: Int64 = 10_000
    /// How long a connection may be down before the shards are given to others. Less than a lease lasts, so that giving
    /// up gains time; more than a reconnect takes.
    private static let patience: Int64 = 3_000

    /// True once where the lease has run out.
    mutating func hasLapsed(at uptime: Int64) -> Bool {
        guard roster != nil, uptime - renewedAt >= Lease.length else { return false }
        roster = nil
        return true
    }

    /// What is due now.
    ///
    /// - Parameters:
    ///   - isConnected: whether commands can be taken and events published.
    ///   - mayBegin: whether a lease may be taken where none is held.
    mutating func step(at uptime: Int64, isConnected: Bool, mayBegin: Bool) -> Step? {
        guard isConnected else {
            let since = downSince ?? uptime
            downSince = since
            return roster != nil && uptime - since >= Self.patience ? .release : nil
        }
        downSince = nil
        return uptime >= nextAt && (roster != nil || mayBegin) ? .renew : nil
    }

    /// - Parameter uptime: before the store was asked.
    mutating func renewed(_ roster: Roster, at uptime: Int64) {
        let isOther =
            self.roster.map { $0.members.map(\.lease.run) != roster.members.map(\.lease.run) } ?? true
        if isOther { changedAt = uptime }
        self.roster = roster
        wasHeld = true
        renewedAt = uptime
        nextAt = uptime + (uptime - changedAt < Self.restless ? Self.shortInterval : Lease.interval)
    }

    /// The store did not take the renewal.
    mutating func failed(at uptime: Int64) { nextAt = uptime + Self.shortInterval }

    mutating func released() { roster = nil }

    /// Milliseconds until the next renewal.
    func rest(at uptime: Int64) -> Int64 { nextAt == .min ? 0 : max(nextAt - uptime, 0) }
}
