import AMQP
import Contract
import MemoryStore
import RoomCore
import Store

/// Compares what was asked, what was told and what is stored, as sets, once all is over.
struct Checker {
    let world: World
    let broker: Broker
    let cluster: Cluster
    let clients: Clients

    func violations() -> [String] {
        var found: [String] = []
        found += CommandCheck(world: world, broker: broker, clients: clients).violations()
        found += EventCheck(world: world, broker: broker).violations()
        found += SessionCheck(history: world.history).violations()
        found += restViolations()
        if found.isEmpty, world.scenario.isReplayable {
            found += Replay(world: world, cluster: cluster, clients: clients).violations()
        }
        return found
    }

    /// Nothing is left over.
    private func restViolations() -> [String] {
        var found: [String] = []
        let topology = world.scenario.topology
        for name in topology.commandQueues + [topology.ticks, topology.queries] {
            let left = broker.queue(name)?.ready.count ?? 0
            if left > 0 { found.append("I7: \(left) messages left in \(name)") }
        }
        let unacked = broker.connections.reduce(0) { sum, connection in
            sum + connection.channels.reduce(0) { $0 + $1.unackedCount }
        }
        if unacked > 0 { found.append("I7: \(unacked) deliveries unacknowledged") }
        if !cluster.disk.outbox.isEmpty {
            found.append("I3: \(cluster.disk.outbox.count) events in the outbox")
        }
        let now = cluster.workerClock.nowMilliseconds()
        for stored in cluster.disk.rooms.values {
            guard let due = stored.room.dueAt, due.milliseconds <= now else { continue }
            found.append("I5: \(stored.room.id) was due \(now - due.milliseconds) ms ago")
        }
        return found
    }
}
