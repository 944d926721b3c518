import AMQP
import Contract
import RoomCore

@testable import Worker

/// The broker's side: what it answers, and what befalls it.
extension Bench {
    static let lost = AMQPError(scope: .connection, kind: .socketClosed, text: "gone")
    static let noExchange = AMQPError(scope: .channel, kind: .notFound, code: 404, text: "no exchange")
    static let badMessage = AMQPError(
        scope: .channel, kind: .preconditionFailed, code: 406, text: "message too large")

    // MARK: Publishers of commands

    /// Puts a message in a queue, and delivers it where the queue is consumed.
    func put(
        _ name: String, _ body: String, on channel: Int = ConsumerChannel.commands,
        properties: Properties = Properties(), redelivered: Bool = false,
        consumerTag: ShortString = "overtime.commands"
    ) {
        put(
            FakeBroker.Message(
                name: name, properties: properties, body: .bytes(Array(body.utf8)), redelivered: redelivered,
                consumerTag: consumerTag), on: channel)
    }

    func put(_ message: FakeBroker.Message, on channel: Int = ConsumerChannel.commands) {
        broker.queued[channel, default: []].append(message)
        deliver(channel)
    }

    /// A command of the common shape, with its name as id and correlation.
    func command(
        _ name: String, _ kind: String, _ room: String = "r", user: String? = nil, more: String = "",
        replies: Bool = true, redelivered: Bool = false
    ) {
        let who = user.map { #","user":"\#($0)""# } ?? ""
        put(
            name, #"{"command":"\#(kind)","room":"\#(room)","id":"\#(name)"\#(who)\#(more)}"#,
            properties: Properties(
                correlationID: ShortString(name), replyTo: replies ? "me" : nil), redelivered: redelivered)
    }

    func tick(_ name: String, _ rooms: [RoomID], replies: Bool = true, redelivered: Bool = false) {
        put(
            FakeBroker.Message(
                name: name,
                properties: Properties(correlationID: ShortString(name), replyTo: replies ? "me" : nil),
                body: .bytes(Tick(scheduler: "s", rooms: rooms).encode()), redelivered: redelivered),
            on: ConsumerChannel.ticks)
    }

    func query(_ body: String) {
        put("query", body, on: ConsumerChannel.queries, properties: Properties(replyTo: "me"))
    }

    private func deliver(_ channel: Int) {
        let deliveries = broker.deliver(channel)
        guard !deliveries.isEmpty else { return }
        broker.hasReacted = true
        worker.handle(deliveries.map { .consumer(.delivery(channel, $0)) }, at: uptime)
    }

    // MARK: Connections

    func connectConsumer() {
        broker.isConsumerConnected = true
        handle(.consumer(.connected(brokerVersion: "4", properties: Table())))
        open(ConsumerChannel.queries)
        for channel in broker.wishes.sorted() { open(channel) }
    }

    private func open(_ channel: Int) {
        guard broker.isConsumerConnected, broker.consuming[channel] == nil else { return }
        broker.hasReacted = true
        handle(.consumer(.channelOpened(channel, generation: broker.open(channel))))
        deliver(channel)
    }

    func closeConsumer(_ channel: Int, _ error: AMQPError? = nil) {
        guard let generation = broker.close(channel) else { return }
        broker.hasReacted = true
        handle(.consumer(.channelClosed(channel, generation: generation, error, unknown: [])))
    }

    /// The channel is closed by the broker, and opened again where the worker wants it.
    func bounceConsumer(_ channel: Int = ConsumerChannel.commands) {
        closeConsumer(channel, Bench.noExchange)
        if broker.wishes.contains(channel) { open(channel) }
    }

    func loseConsumer() {
        for channel in broker.consuming.keys.sorted() { closeConsumer(channel, Bench.lost) }
        broker.isConsumerConnected = false
        handle(.consumer(.disconnected(Bench.lost, retryInMilliseconds: 100)))
    }

    func connectPublisher() {
        handle(.publisher(.connected(brokerVersion: "4", properties: Table())))
        for channel in 0..<3 { openPublisher(channel) }
    }

    func openPublisher(_ channel: Int) {
        let generation = broker.nextGeneration()
        broker.publishing[channel] = generation
        handle(.publisher(.channelOpened(channel, generation: generation)))
    }

    func closePublisher(_ channel: Int, _ error: AMQPError = Bench.noExchange) {
        let generation = broker.publishing.removeValue(forKey: channel) ?? broker.nextGeneration()
        let unknown = broker.outstanding.filter { $0.channel == channel }.map(\.publication.id)
        broker.outstanding.removeAll { $0.channel == channel }
        handle(.publisher(.channelClosed(channel, generation: generation, error, unknown: unknown)))
    }

    func losePublisher() {
        for channel in broker.publishing.keys.sorted() { closePublisher(channel, Bench.lost) }
        handle(.publisher(.disconnected(Bench.lost, retryInMilliseconds: 100)))
    }

    // MARK: Answers

    /// Carries out what the worker asked for, and tells the outcomes.
    func react() {
        broker.hasReacted = false
        for call in publisher.take() {
            guard case .publish(let publications, let channel, let generation) = call,
                broker.publishing[channel] == generation
            else { continue }
            let new = publications.map { FakeBroker.Published(channel: channel, publication: $0) }
            broker.published += new
            broker.outstanding += new
        }
        for call in consumer.take() {
            switch call {
            case .acknowledge(let tags, let channel): broker.acknowledge(tags, on: channel)
            case .reject(let tag, _, let channel): broker.reject(tag, on: channel)
            case .open(let channel):
                broker.wishes.insert(channel)
                open(channel)
            case .close(let channel):
                broker.wishes.remove(channel)
                closeConsumer(channel)
            case .publish: break
            }
        }
        tellOutcomes()
    }

    private func tellOutcomes() {
        guard !fuse.isBlown else { return }
        var rest: [FakeBroker.Published] = []
        for one in broker.outstanding {
            let id = one.publication.id
            switch broker.verdict(one.channel, one.publication) {
            case .confirm: handle(.publisher(.confirmed(one.channel, [id])))
            case .refuse: handle(.publisher(.refused(one.channel, [id])))
            case .returned:
                handle(.publisher(.returned(one.channel, id, code: 312, text: "NO_ROUTE")))
            case .silence:
                rest.append(one)
                continue
            }
            broker.hasReacted = true
        }
        broker.outstanding = rest
    }
}
