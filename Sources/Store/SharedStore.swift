package import RoomCore

/// A store that several workers use at once.
///
/// What keeps them apart is the fence of `RoomStore`, and nothing else; leases only say who is to consume which
/// shard. The clock of such a store is the one that counts: `BatchState.now` gives it with what was loaded, so that
/// hosts whose clocks differ decide alike.
///
/// **Events of others.** `BatchState.unsent` brings the events of the loaded rooms that other runs committed and nobody
/// has marked as published. Publish them before anything newer of their rooms; a copy that their own run sends
/// as well does no harm. `unpublished(after:limit:)` gives this run's own events, and of every room in which a run
/// without a lease has left something everything that is unpublished: what a living worker still holds back comes
/// before what a dead one left behind it.
///
/// **Positions** of a room's events ascend in the order of its commits, whoever commits.
package protocol SharedStore: RoomStore {
    /// The store's clock.
    func now() throws(StoreError) -> Instant

    /// Renews this run's lease, begins it where it has none, and tells who else holds one. A lease is over
    /// `Lease.length` after it was renewed last, by the store's clock; it needs the run begun before.
    func renewLease(_ lease: Lease) throws(StoreError) -> Roster

    /// Gives a lease up at once: others may take its shards. The run goes on, and has not crashed.
    func releaseLease(of run: String) throws(StoreError)

    /// Takes over what runs without a lease left unpublished: of at most `limit` rooms in which there is such everything,
    /// also what living runs have not published yet, each room's events in order.
    func inherit(limit: Int) throws(StoreError) -> [OutboxMessage]
}

/// What a worker says of itself when it renews its lease.
package struct Lease: Hashable, Sendable {
    /// Milliseconds after which a lease that was not renewed is over.
    package static let length: Int64 = 6_000
    /// Milliseconds between two renewals.
    package static let interval: Int64 = 2_000
    /// Milliseconds for which a run that has given its lease up is not taken for crashed.
    package static let patience: Int64 = 600_000

    package let run: String
    /// The number of shards that this worker is configured with.
    package let shards: Int
    /// Those that it consumes at present, ascending.
    package let consumed: [Int]
    /// How far the store's clock is ahead of this worker's host, in milliseconds.
    package let clockOffset: Int64

    package init(run: String, shards: Int, consumed: [Int], clockOffset: Int64) {
        self.run = run
        self.shards = shards
        self.consumed = consumed
        self.clockOffset = clockOffset
    }
}

/// The workers of a shared store.
package struct Roster: Hashable, Sendable {
    /// A worker that holds a lease.
    package struct Member: Hashable, Sendable {
        package let lease: Lease
        package let pid: Int32
        package let host: String

        package init(lease: Lease, pid: Int32, host: String) {
            self.lease = lease
            self.pid = pid
            self.host = host
        }
    }

    /// The store's clock.
    package let now: Instant
    /// In byte order of their runs, the asking one among them.
    package let members: [Member]
    /// Runs that neither ended cleanly nor hold a lease, but for those that have given theirs up within `Lease.patience`;
    /// oldest first. One that comes back is none of them any more.
    package let crashed: [String]

    package init(now: Instant, members: [Member], crashed: [String]) {
        self.now = now
        self.members = members
        self.crashed = crashed
    }

    /// The shards that a run is to consume: shard i belongs to member i mod their number. None where it holds no lease.
    package func shards(of run: String, count: Int) -> [Int] {
        guard let place = members.firstIndex(where: { $0.lease.run == run }) else { return [] }
        return (0..<max(count, 0)).filter { $0 % members.count == place }
    }
}
