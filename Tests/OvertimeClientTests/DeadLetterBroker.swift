import AMQP
import Contract
import Glibc
import OvertimeClient
import Service
import Testing

/// A topology of its own on the broker of this test run: a queue of dead letters and one of commands, which go away by
/// themselves.
struct DeadLetterBroker {
    static var url: String? { getenv("OVERTIME_TEST_AMQP_URL").map { String(cString: $0) } }
    static var isThere: Bool { url != nil }
    static let noBroker: Comment = "set OVERTIME_TEST_AMQP_URL to a broker's URL"

    let topology: Topology
    let connection: LinkConfiguration

    init() throws {
        topology = try Topology(prefix: "test.\(getpid()).\(RandomToken.make())")
        connection = LinkConfiguration(
            endpoints: Endpoints(try Endpoint(url: #require(Self.url))), connectionName: "dead letters test")
    }

    var box: DeadLetterBox { DeadLetterBox(connection: connection, topology: topology) }
    var deadline: Int64 { MonotonicClock.milliseconds() + 20_000 }

    /// - Parameters:
    ///   - hasQueue: without it commands find no queue.
    ///   - kind: of the queue of dead letters.
    ///   - capacity: how many commands their queue takes before it refuses.
    func declare(hasQueue: Bool = true, kind: String = "quorum", capacity: Int32? = nil) throws {
        var steps = [
            exchange(topology.commandsExchange, "topic"), exchange(topology.dead, "fanout"),
            queue(topology.dead, kind == "quorum" ? ["x-delivery-limit": .int32(1_000_000)] : [:], kind),
            bind(topology.dead, topology.dead, ""),
        ]
        if hasQueue {
            let name = topology.commandQueues[0]
            if let capacity {
                // A quorum queue would take some more.
                steps.append(
                    queue(
                        name, ["x-max-length": .int32(capacity), "x-overflow": .text("reject-publish")],
                        "classic"))
            } else {
                steps.append(queue(name, ["x-dead-letter-exchange": .string(topology.dead.bytes)]))
            }
            steps.append(bind(name, topology.commandsExchange, "#"))
        }
        let mailbox = Mailbox<LinkEvent>()
        let plan = ChannelPlan(declare: steps.map { DeclarationStep($0) })
        let link = Link(configuration: connection, channels: { [plan] }, observer: { mailbox.put($0) })
        link.start()
        defer { link.stop() }
        _ = try next(mailbox) { if case .channelOpened = $0 { true } else { nil } }
    }

    /// Publishes with confirms and waits for all of them.
    func publish(to exchange: ShortString, _ messages: [(properties: Properties, body: String)]) throws {
        let mailbox = Mailbox<LinkEvent>()
        let link = Link(
            configuration: connection, channels: { [ChannelPlan(confirms: true)] },
            observer: { mailbox.put($0) })
        link.start()
        defer { link.stop() }
        let generation = try next(mailbox) { event -> UInt64? in
            if case .channelOpened(_, let generation) = event { generation } else { nil }
        }
        let publications = messages.enumerated().map { index, message in
            Publication(
                id: UInt64(index + 1), exchange: exchange, routingKey: "demo", mandatory: true,
                properties: message.properties, body: Array(message.body.utf8))
        }
        link.publish(publications, on: 0, generation: generation)
        var open = Set(publications.map(\.id))
        _ = try next(mailbox) { event -> Bool? in
            if case .confirmed(_, let ids) = event { open.subtract(ids) }
            return open.isEmpty ? true : nil
        }
    }

    /// The next message in the queue of commands, which is taken out.
    func takeCommand() throws -> Delivery {
        let mailbox = Mailbox<LinkEvent>()
        let plan = ChannelPlan(
            prefetch: 1, consumers: [ConsumerPlan(queue: topology.commandQueues[0], tag: "c", noAck: true)])
        let link = Link(configuration: connection, channels: { [plan] }, observer: { mailbox.put($0) })
        link.start()
        defer { link.stop() }
        return try next(mailbox) { event -> Delivery? in
            if case .delivery(_, let delivery) = event { delivery } else { nil }
        }
    }

    /// A pass that does what `judge` says, and the letters in its order.
    func pass(
        publishes: Bool = false, _ judge: (LetterID, Letter) -> DeadLetterBox.Verdict = { _, _ in .keep }
    ) -> (pass: DeadLetterBox.Pass, ids: [LetterID], letters: [Letter]) {
        var ids: [LetterID] = []
        var letters: [Letter] = []
        let pass = box.pass(publishes: publishes, until: deadline) { id, letter in
            ids.append(id)
            letters.append(letter)
            return judge(id, letter)
        }
        return (pass, ids, letters)
    }

    /// Runs `body` beside a worker that makes a dead letter of every command. `body` can wait for how many it has made.
    func whileKilling(_ body: (_ awaitLetters: (Int) throws -> Void) throws -> Void) throws {
        let mailbox = Mailbox<LinkEvent>()
        let letters = Link(
            configuration: connection, channels: { [ChannelPlan(confirms: true)] },
            observer: { mailbox.put($0) })
        letters.start()
        defer { letters.stop() }
        let generation = try next(mailbox) { event -> UInt64? in
            if case .channelOpened(_, let generation) = event { generation } else { nil }
        }
        let plan = ChannelPlan(
            prefetch: 0, consumers: [ConsumerPlan(queue: topology.commandQueues[0], tag: "c", noAck: true)])
        let dead = topology.dead
        let commands = Link(
            configuration: connection, channels: { [plan] },
            observer: { events in
                let made = events.compactMap { event -> Publication? in
                    guard case .delivery(_, let delivery) = event, case .bytes(let body) = delivery.body
                    else {
                        return nil
                    }
                    return Publication(
                        id: delivery.tag.number, exchange: dead, routingKey: delivery.routingKey,
                        mandatory: true,
                        properties: DeadLetter.properties(
                            original: delivery.properties, reason: "invalid", detail: "killed"),
                        body: body)
                }
                if !made.isEmpty { letters.publish(made, on: 0, generation: generation) }
            })
        commands.start()
        defer { commands.stop() }
        var confirmed = 0
        try body { count in
            guard confirmed < count else { return }
            _ = try next(mailbox) { event -> Bool? in
                if case .confirmed(_, let ids) = event { confirmed += ids.count }
                return confirmed >= count ? true : nil
            }
        }
    }

    private func next<Value>(
        _ mailbox: Mailbox<LinkEvent>, _ find: (LinkEvent) -> Value?
    ) throws -> Value {
        let end = deadline
        while MonotonicClock.milliseconds() < end {
            for event in mailbox.take(timeoutMilliseconds: 1_000) {
                if let value = find(event) { return value }
            }
        }
        throw NothingCame()
    }

    private struct NothingCame: Error {}

    /// Runs what blocks on a thread of its own, because tests share a few.
    static func aside(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            do {
                try WorkThread.detached(name: "test-aside") { done.resume(with: Result(catching: body)) }
            } catch {
                done.resume(throwing: error)
            }
        }
    }

    private func exchange(_ name: ShortString, _ kind: ShortString) -> Declaration {
        .exchange(name: name, kind: kind, durable: false, autoDelete: true, internal: false, arguments: [:])
    }

    private func queue(_ name: ShortString, _ arguments: Table, _ kind: String = "quorum") -> Declaration {
        var arguments = arguments
        arguments["x-queue-type"] = .text(kind)
        arguments["x-expires"] = .int32(60_000)
        return .queue(name: name, durable: true, exclusive: false, autoDelete: false, arguments: arguments)
    }

    private func bind(_ queue: ShortString, _ exchange: ShortString, _ key: ShortString) -> Declaration {
        .bindQueue(queue: queue, exchange: exchange, routingKey: key, arguments: [:])
    }
}
