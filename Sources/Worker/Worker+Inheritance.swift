import RoomCore
import Service
import Store

/// Events that other runs committed and that may not have been published: this worker publishes them as well.
///
/// **In order.** A room's events get their positions in the order of its commits, and whoever commits has loaded the room in
/// the state that the one before left. So what others left unpublished comes with that load, stands in this worker's
/// outbox before anything that the load leads to, and no event with a smaller position can come after it. What this
/// worker has confirmed and not yet marked stands neither in the outbox nor behind the store's marks, so that is asked too.
extension Worker {
    private static let inheritInterval: Int64 = 5_000
    private static let inheritLimit = 100

    func takeOver(_ events: [OutboxMessage]) {
        guard !events.isEmpty else { return }
        let told = Set(published)
        for event in events where !told.contains(event.position) && !outbox.contains(event) {
            outbox.enqueue(event, job: nil)
        }
    }

    /// Takes over what workers left behind that hold no lease any more.
    func inherit(at uptime: Int64) {
        guard let shared, phase == .serving, !health.isFailing, leases.roster != nil, uptime >= inheritAt,
            outbox.held < settings.eventBound
        else { return }
        do throws(StoreError) {
            let events = try shared.inherit(limit: Self.inheritLimit)
            inheritAt = uptime + (events.isEmpty ? Self.inheritInterval : 0)
            guard !events.isEmpty else { return }
            log.info("publishing what another worker left", ["events": events.count])
            takeOver(events)
        } catch {
            inheritAt = uptime + Self.inheritInterval
            guard error.isBatchFault || isLocal(error) else { return storeFailed(error, at: uptime) }
            counters.storeFailures += 1
            log.error("what other workers left was not taken over: tried again", ["error": error.description])
            // It may be this worker's by now, and no load would bring it then.
            drainAgain()
        }
    }
}
