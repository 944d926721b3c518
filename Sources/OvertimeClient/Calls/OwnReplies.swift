import AMQP
import Contract
import Service
import Synchronization

/// A process's own reply queue, with a new name for each connection: the broker may still hold the old one for a
/// connection that it believes alive.
final class OwnReplies: Sendable {
    private let topology: Topology
    private let component: String
    private let token = Mutex(RandomToken.make())

    init(topology: Topology, component: String) {
        self.topology = topology
        self.component = component
    }

    var name: ShortString { own?.name ?? .empty }
    var declarations: [DeclarationStep] { own?.declarations ?? [] }

    /// To be told what the link tells, before the link connects again.
    func note(_ events: [LinkEvent]) {
        let isLost = events.contains { if case .disconnected = $0 { true } else { false } }
        if isLost { token.withLock { $0 = RandomToken.make() } }
    }

    private var own: OwnQueue? {
        topology.ownQueue(component: component, token: token.withLock { $0 }, takesReplies: true)
    }
}
