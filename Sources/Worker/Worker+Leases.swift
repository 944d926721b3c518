import Contract
import Metrics
import Service
package import Store

/// Several workers on one store: each consumes the shards that its place among the leases gives it.
///
/// Two workers may see each other at different moments, so for a while both or neither take a shard for their own. Both do
/// no harm: the broker lets one consume at a time, and the fence covers the rest. Neither lasts until the next renewal.
extension Worker {
    /// Whether a worker may run beside those that hold a lease; asked before anything is declared, since queues for
    /// another number of shards would take commands that nobody consumes. `otherShards` where it may not; its run is over
    /// then.
    package static func admit(
        _ run: RunRow, shards: Int, to store: any RoomStore
    ) throws(StoreError) {
        guard let shared = store as? any SharedStore else { return }
        let roster = try shared.renewLease(Lease(run: run.id, shards: shards, consumed: [], clockOffset: 0))
        guard let other = stranger(in: roster, shards: shards) else {
            return try shared.releaseLease(of: run.id)
        }
        try shared.endRun(run.id)
        throw other
    }

    private static func stranger(in roster: Roster, shards: Int) -> StoreError? {
        roster.members.first { $0.lease.shards != shards }.map { member in
            .otherShards(mine: shards, theirs: member.lease.shards, host: member.host)
        }
    }

    /// Renews the lease or gives it up, where that is due, and goes by what it gives.
    func keepLease(at uptime: Int64) {
        guard let shared, phase != .stopped else { return }
        if leases.hasLapsed(at: uptime) { lapsed(at: uptime) }
        let step = leases.step(at: uptime, isConnected: canServe, mayBegin: phase == .serving)
        // A store that fails is asked by nobody but its probe.
        if !health.isFailing {
            switch step {
            case .renew: renewLease(shared, at: uptime)
            case .release:
                log.warning("the broker is not reached: the shards are left to others")
                releaseLease()
            case nil: break
            }
        }
        takeShards(at: uptime)
    }

    /// Others have taken the shards: what is not decided is theirs, and comes back where it is not. Ticks too where the
    /// store fails, as any other worker may decide them.
    private func lapsed(at uptime: Int64) {
        log.warning("the lease has run out")
        shards.want([])
        tendShards(at: uptime)
        guard health.isFailing else { return }
        dropUndecided(of: ConsumerChannel.ticks)
        consumer.closeChannel(ConsumerChannel.ticks)
    }

    /// Whether commands can be taken and events published.
    private var canServe: Bool {
        meters.consumer.isConnected && meters.publisher.isConnected
            && (shards.count == 1 || links.hasDeclared)
    }

    /// What this worker says of itself, as it stands now.
    var ownLease: Lease {
        let consumed = shards.all.filter {
            shards.isConsumed($0) && links.consuming.contains(ConsumerChannel.commands(of: $0))
        }
        return Lease(
            run: identity.id, shards: shards.count, consumed: consumed, clockOffset: storeClock.offset)
    }

    private func renewLease(_ shared: any SharedStore, at uptime: Int64) {
        let lease = ownLease
        do throws(StoreError) {
            let asked = clock.nowMilliseconds()
            let roster = try shared.renewLease(lease)
            storeClock.learn(roster.now, askedAt: asked, answeredAt: clock.nowMilliseconds())
            take(roster, at: uptime)
        } catch {
            leases.failed(at: uptime)
            guard error.isBatchFault || isLocal(error) else { return storeFailed(error, at: uptime) }
            counters.storeFailures += 1
            log.error("the lease was not renewed: tried again", ["error": error.description])
        }
    }

    private func take(_ roster: Roster, at uptime: Int64) {
        if let error = Self.stranger(in: roster, shards: shards.count) {
            // Those who serve already go on; who begins with another number is wrong.
            guard leases.wasHeld else {
                fatal = error
                return signOff()
            }
            if !saidOtherShards { log.error("another worker is refused", ["error": error.description]) }
            saidOtherShards = true
        } else {
            saidOtherShards = false
        }
        guardian.learn(
            crashed: roster.crashed, consumed: shards.wanted.map { settings.topology.commandQueues[$0] })
        leases.renewed(roster, at: uptime)
    }

    private func takeShards(at uptime: Int64) {
        let before = shards.wanted
        shards.want(leases.roster.map(ownShards) ?? [])
        guard shards.wanted != before else { return }
        log.info(
            "shards",
            [
                "own": shards.wanted.map { "\($0)" }.joined(separator: ","),
                "workers": leases.roster?.members.count ?? 0,
            ])
    }

    private func ownShards(in roster: Roster) -> [Int] {
        // Those with another number of shards are about to give up.
        let members = roster.members.filter { $0.lease.shards == shards.count }
        return Roster(now: roster.now, members: members, crashed: [])
            .shards(of: identity.id, count: shards.count)
    }

    /// Leaves the shards to others at once. That it fails costs them no more than the rest of the lease.
    func releaseLease() {
        guard let shared, leases.roster != nil else { return }
        leases.released()
        do throws(StoreError) {
            try shared.releaseLease(of: identity.id)
        } catch {
            log.warning("the lease was not given up: it runs out", ["error": error.description])
        }
    }

    /// Says that this run is over before it has served anybody.
    private func signOff() {
        do throws(StoreError) {
            try shared?.releaseLease(of: identity.id)
            try store.endRun(identity.id)
        } catch {
            log.warning("the store did not take the end of this run", ["error": error.description])
        }
    }
}
