import AMQP
import Contract
import OvertimeClient
import Service

/// Whether the shared objects exist: one passive declaration a channel, which needs no right and changes nothing.
enum TopologyCheck {
    struct Found {
        var version = ""
        /// The one that was asked, by host and port.
        var node = ""
        var present = 0
        var missing: [(name: String, error: String)] = []
        var leftovers: [String] = []
    }

    private struct Probe {
        let name: String
        let step: DeclarationStep
        /// An object that should not be there.
        let isLeftover: Bool
    }

    /// Channels at a time: brokers allow 2,047 and less.
    private static let atOnce = 64

    static func run(_ composition: Composition, until deadline: Int64) -> Result<Found, OvertimeError> {
        let probes = probes(composition.topology)
        var found = Found()
        for first in stride(from: 0, to: probes.count, by: atOnce) {
            let some = Array(probes[first..<min(first + atOnce, probes.count)])
            if let failure = look(some, composition, until: deadline, &found) { return .failure(failure) }
        }
        return .success(found)
    }

    private static func look(
        _ probes: [Probe], _ composition: Composition, until deadline: Int64, _ found: inout Found
    ) -> OvertimeError? {
        let mailbox = Mailbox<LinkEvent>()
        let link = Link(
            configuration: composition.link("overtime check"),
            channels: { probes.map { ChannelPlan(declare: [$0.step]) } }, observer: { mailbox.put($0) })
        link.start()
        defer { link.stop() }
        var waiting = Set(probes.indices)
        var lastError: AMQPError?
        while !waiting.isEmpty {
            let left = deadline - MonotonicClock.milliseconds()
            guard left > 0 else { return .unreachable(lastError.map { "\($0)" } ?? "") }
            for event in mailbox.take(timeoutMilliseconds: left) {
                switch event {
                case .connected(let version, _, let node):
                    found.version = version
                    found.node = node
                case .channelOpened(let index, _):
                    guard waiting.remove(index) != nil else { continue }
                    if probes[index].isLeftover {
                        found.leftovers.append(probes[index].name)
                    } else {
                        found.present += 1
                    }
                case .channelClosed(let index, _, .some(let error), _):
                    guard error.scope == .channel, waiting.remove(index) != nil, !probes[index].isLeftover
                    else { continue }
                    let remedy =
                        error.kind == .notFound && error.isConfiguration
                        ? "missing: a worker declares it at its start" : error.description
                    found.missing.append((probes[index].name, remedy))
                case .disconnected(let error, _):
                    lastError = error
                    if error.isConfiguration { return .brokerRefuses("\(error)") }
                default: break
                }
            }
        }
        return nil
    }

    private static func probes(_ topology: Topology) -> [Probe] {
        let expected = (topology.declarations(.passive) + topology.logDeclarations(.passive)).compactMap {
            step in
            name(step.declaration).map { Probe(name: $0, step: step, isLeftover: false) }
        }
        let names = Set(expected.map(\.name))
        let others = ["\(topology.prefix).commands"] + (0..<256).map { "\(topology.prefix).commands.\($0)" }
        return expected
            + others.filter { !names.contains("queue \($0)") }.compactMap { other in
                ShortString(other).map { name in
                    let queue = Declaration.queue(
                        name: name, durable: true, exclusive: false, autoDelete: false, arguments: [:])
                    return Probe(
                        name: "queue \(other)", step: DeclarationStep(queue, mode: .passive), isLeftover: true
                    )
                }
            }
    }

    private static func name(_ declaration: Declaration) -> String? {
        switch declaration {
        case .exchange(let name, _, _, _, _, _): "exchange \(name)"
        case .queue(let name, _, _, _, _): "queue \(name)"
        case .bindQueue, .bindExchange: nil
        }
    }
}
