import AMQP
import Contract
import RoomCore

/// Programs that send commands: each waits for the confirm and sends again when it does not know; some send the same
/// command several times anyway.
final class Clients {
    static let replies: ShortString = "client.replies"
    private static let forbidden: ShortString = "overtime.commands"

    private let world: World
    private let broker: Broker
    private var maker: IntentMaker
    private(set) var publishes: [Publish] = []
    private var questions = 0

    init(world: World, broker: Broker) {
        self.world = world
        self.broker = broker
        maker = IntentMaker(scenario: world.scenario)
    }

    /// Says when everything is sent.
    func start() {
        for room in world.scenario.rooms {
            let at = world.dice.skewed(0...world.scenario.duration / 2)
            for intent in maker.opening(of: room, dice: &world.dice) { send(intent, at: at) }
        }
        for _ in 0..<world.scenario.commands {
            let at = world.dice.span(0...world.scenario.duration)
            let intent = draw()
            send(intent, at: at)
            if world.strikes(.reusedKey, usual: 0.03), let other = maker.reusing(intent, dice: &world.dice) {
                world.history.inject(.reusedKey)
                send(other, at: at + world.dice.skewed(0...10_000))
            }
            if world.dice.chance(0.05) { world.timeline.at(at) { [self] in ask() } }
        }
        if world.scenario.rate(.poisonCommand) > 0 {
            send(
                maker.poison(dice: &world.dice), at: world.dice.span(0...world.scenario.duration))
        }
    }

    private func draw() -> Intent {
        if world.strikes(.invalidCommand, usual: 0.05) {
            world.history.inject(.invalidCommand)
            return maker.invalid(dice: &world.dice)
        }
        if world.strikes(.oversizedCommand, usual: 0.01) {
            world.history.inject(.oversizedCommand)
            return maker.oversized(dice: &world.dice)
        }
        var intent = maker.next(dice: &world.dice)
        if world.strikes(.expiredCommand, usual: 0.02) {
            world.history.inject(.expiredCommand)
            intent.properties.expiration = ShortString("\(world.dice.skewed(1...5_000))")
        }
        return intent
    }

    private func send(_ intent: Intent, at: Int64) {
        world.timeline.at(at) { [self] in publish(intent) }
        guard world.strikes(.repeatedCommand, usual: 0.15) else { return }
        for _ in 0..<world.dice.int(1...4) {
            world.history.inject(.repeatedCommand)
            let again = at + world.dice.skewed(0...30_000)
            world.timeline.at(again) { [self] in publish(intent) }
        }
    }

    // MARK: One publish

    private func publish(_ intent: Intent) {
        let wantsReply = intent.key == nil || world.dice.chance(0.9)
        let publish = Publish(number: publishes.count, intent: intent, wantsReply: wantsReply)
        publishes.append(publish)
        world.timeline.after(world.latency()) { [self] in arrive(publish) }
    }

    private func arrive(_ publish: Publish) {
        guard !broker.isBlocked else {
            world.timeline.after(300) { [self] in arrive(publish) }
            return
        }
        guard broker.isUp else { return end(publish, .unknown) }
        let isUnknown = world.strikes(.unknownPublish, usual: 0.03)
        if isUnknown {
            world.history.inject(.unknownPublish, publish.correlation)
            guard world.dice.chance(0.5) else { return end(publish, .unknown) }
        }
        let message = message(publish)
        world.history.note("client publishes \(publish.correlation): \(describe(publish.intent))")
        guard let outcome = broker.route(message, isMandatory: true), outcome == .confirmed else {
            return end(publish, .refused)
        }
        let life = broker.life
        world.timeline.after(world.latency()) { [self] in
            guard broker.life == life, !isUnknown else { return end(publish, .unknown) }
            message.isSettled = true
            end(publish, .confirmed)
        }
    }

    private func describe(_ intent: Intent) -> String {
        intent.isOversized ? "oversized" : String(decoding: intent.body, as: UTF8.self)
    }

    private func message(_ publish: Publish) -> Message {
        let intent = publish.intent
        var properties = intent.properties
        properties.correlationID = ShortString(publish.correlation)
        if intent.hasForbiddenReply {
            properties.replyTo = Self.forbidden
        } else if publish.wantsReply {
            properties.replyTo = Self.replies
        }
        return Message(
            exchange: world.scenario.topology.commandsExchange,
            routingKey: ShortString(intent.room.text) ?? .empty, properties: properties, body: intent.body,
            isOversized: intent.isOversized)
    }

    private func end(_ publish: Publish, _ outcome: Publish.Outcome) {
        publish.outcome = outcome
        guard outcome != .confirmed, world.dice.chance(0.9), world.now < world.calmAt else { return }
        // The same command once more: an id makes that harmless.
        world.timeline.after(world.dice.skewed(100...8_000)) { [self] in self.publish(publish.intent) }
    }

    /// A read-only question, or what is none; nobody counts on the answer.
    private func ask() {
        questions += 1
        let body: [UInt8] =
            switch world.dice.int(0...3) {
            case 0: QueryEncoder.encode(.rooms(after: nil, limit: world.dice.int(1...3)))
            case 1:
                QueryEncoder.encode(
                    .participants(room: world.dice.one(of: world.scenario.rooms), after: nil, limit: 2))
            case 2: QueryEncoder.encode(.state)
            default: Array("{\"query\":\"everything\"}".utf8)
            }
        let properties = Properties(
            correlationID: ShortString("q\(questions)"), replyTo: Self.replies)
        let message = Message(
            exchange: world.scenario.topology.queries, routingKey: "", properties: properties, body: body)
        message.isSettled = true
        if broker.isUp { _ = broker.route(message, isMandatory: false) }
    }

    func lost(_ messages: [Message]) {
        for message in messages {
            guard let text = message.correlation, text.first == "p", let number = Int(text.dropFirst()),
                message.exchange == world.scenario.topology.commandsExchange
            else { continue }
            publishes[number].isLost = true
        }
    }
}
