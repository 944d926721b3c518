import AMQP
import Contract
import OvertimeClient
import RoomCore
import Testing

@Suite(
    "The queue of dead letters",
    .enabled(if: DeadLetterBroker.isThere, DeadLetterBroker.noBroker), .timeLimit(.minutes(2)))
struct DeadLetterBoxTests {
    private static func messages(_ count: Int) -> [(properties: Properties, body: String)] {
        (1...count).map { number in
            (
                Properties(
                    headers: ["x-overtime-reason": .text("crashed_worker")],
                    messageID: ShortString("m\(number)")),
                #"{"command":"open","room":"room \#(number)","id":"k\#(number)"}"#
            )
        }
    }

    private static func broker(hasQueue: Bool = true, letters: Int) throws -> DeadLetterBroker {
        let broker = try DeadLetterBroker()
        try broker.declare(hasQueue: hasQueue)
        if letters > 0 { try broker.publish(to: broker.topology.dead, messages(letters)) }
        return broker
    }

    private static func numbers(_ letters: [Letter]) -> [String] {
        letters.map { String($0.echo.key?.text.dropFirst() ?? "?") }
    }

    @Test("looking changes nothing: same letters, same ids, same order, however often")
    func looking() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 300)
            let first = broker.pass()
            #expect(first.pass.isWhole && first.pass.isSettled)
            #expect(Self.numbers(first.letters) == (1...300).map(String.init))
            for _ in 1...5 {
                let again = broker.pass()
                #expect(again.ids == first.ids)
            }
        }
    }

    @Test("what is dropped is gone, the rest stays in order")
    func dropping() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 5)
            let ids = broker.pass().ids
            let dropped = broker.pass { id, _ in id == ids[1] || id == ids[3] ? .drop : .keep }
            #expect(dropped.pass.outcomes == [ids[1]: .dropped, ids[3]: .dropped])
            let left = broker.pass()
            #expect(Self.numbers(left.letters) == ["1", "3", "5"])
            #expect(left.ids == [ids[0], ids[2], ids[4]])
        }
    }

    @Test("what is retried arrives as the command it was, and is taken out only then")
    func retrying() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 3)
            let ids = broker.pass().ids
            let retried = broker.pass(publishes: true) { id, letter in
                id == ids[1] ? .retry(RestoredCommand(letter, user: broker.box.user)) : .keep
            }
            #expect(retried.pass.outcomes == [ids[1]: .retried])
            #expect(retried.pass.isSettled)
            let command = try broker.takeCommand()
            #expect(command.routingKey == "room 2")
            #expect(command.properties == Properties(messageID: "m2"))
            #expect(Self.numbers(broker.pass().letters) == ["1", "3"])
        }
    }

    @Test("all of them, more than are published at a time")
    func retryingAll() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 700)
            let retried = broker.pass(publishes: true) { _, letter in
                .retry(RestoredCommand(letter, user: nil))
            }
            #expect(retried.pass.outcomes.values.allSatisfy { $0 == .retried })
            #expect(retried.pass.outcomes.count == 700)
            #expect(broker.pass().pass.expected == 0)
        }
    }

    @Test("no acknowledgement is lost in a crowd of them, and the others keep their order")
    func crowd() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 3_000)
            var number = 0
            let dropped = broker.pass { _, _ in
                number += 1
                return number.isMultiple(of: 3) ? .keep : .drop
            }
            #expect(dropped.pass.isSettled)
            #expect(dropped.pass.outcomes.count == 2_000)
            #expect(Self.numbers(broker.pass().letters) == (1...1_000).map { String($0 * 3) })
        }
    }

    @Test("what no queue takes stays where it was")
    func returned() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(hasQueue: false, letters: 2)
            let ids = broker.pass().ids
            let retried = broker.pass(publishes: true) { _, letter in
                .retry(RestoredCommand(letter, user: nil))
            }
            #expect(retried.pass.outcomes == [ids[0]: .returned, ids[1]: .returned])
            #expect(broker.pass().ids == ids)
        }
    }

    @Test(
        "commands that die again at once are letters again: each once, and not met twice", arguments: 1...3)
    func dyingAgain(_ round: Int) async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 0)
            // Their routing key is their room, so that the letter of one that dies again is equal to its first.
            let commands = (1...600).map { number in
                (
                    Properties(messageID: ShortString("m\(number)")),
                    #"{"command":"open","room":"demo","id":"k\#(number)"}"#
                )
            }
            try broker.whileKilling { awaitLetters in
                try broker.publish(to: broker.topology.commandsExchange, commands)
                try awaitLetters(600)
                // In the first round nobody has looked at them.
                for _ in 1..<round { #expect(broker.pass().ids.count == 600) }
                let retried = broker.pass(publishes: true) { _, letter in
                    .retry(RestoredCommand(letter, user: nil))
                }
                #expect(retried.pass.isWhole && retried.pass.isSettled)
                #expect(retried.ids.count == 600)
                #expect(retried.pass.outcomes.values.filter { $0 == .retried }.count == 600)
                try awaitLetters(1_200)
            }
            let left = broker.pass()
            #expect(left.ids.count == 600)
            #expect(Set(Self.numbers(left.letters)) == Set((1...600).map(String.init)))
        }
    }

    @Test(
        "of equal letters only the one that was named goes", arguments: [false, true], [false, true])
    func twins(_ wereSeen: Bool, _ retries: Bool) async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 0)
            try broker.publish(
                to: broker.topology.dead,
                (1...3).map { _ in (Properties(headers: ["x-overtime-reason": .text("odd")]), "[]") })
            if wereSeen { #expect(broker.pass().ids.count == 3) }
            var named: LetterID?
            let pass = broker.pass(publishes: retries) { id, letter in
                if named == nil { named = id }
                guard id == named else { return .keep }
                return retries ? .retry(RestoredCommand(letter, user: nil)) : .drop
            }
            #expect(pass.pass.isWhole && pass.pass.isSettled)
            #expect(pass.pass.outcomes == [try #require(named): retries ? .retried : .dropped])
            #expect(broker.pass().ids == Array(pass.ids.prefix(2)))
            if retries { #expect(try broker.takeCommand().body == .bytes(Array("[]".utf8))) }
        }
    }

    @Test("of equal letters those that are refused stay", arguments: [false, true])
    func refusedTwins(_ wereSeen: Bool) async throws {
        try await DeadLetterBroker.aside {
            let broker = try DeadLetterBroker()
            try broker.declare(capacity: 2)
            try broker.publish(to: broker.topology.dead, (1...8).map { _ in (Properties(), "[]") })
            if wereSeen { #expect(broker.pass().ids.count == 8) }
            let retried = broker.pass(publishes: true) { _, letter in
                .retry(RestoredCommand(letter, user: nil))
            }
            #expect(retried.pass.isWhole && retried.pass.isSettled)
            let outcomes = retried.pass.outcomes.values
            #expect(outcomes.contains(.retried) && outcomes.contains(.refused))
            #expect(broker.pass().ids.count == outcomes.filter { $0 == .refused }.count)
        }
    }

    @Test("an equal letter that comes during the pass was not asked for", arguments: [false, true])
    func comingMeanwhile(_ wereSeen: Bool) async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 300)
            if wereSeen { #expect(broker.pass().ids.count == 300) }
            let again = Array(Self.messages(300).prefix(5))
            var hasCome = false
            let dropped = broker.pass { _, _ in
                if !hasCome {
                    hasCome = true
                    do { try broker.publish(to: broker.topology.dead, again) } catch { Issue.record(error) }
                }
                return .drop
            }
            #expect(dropped.pass.isWhole && dropped.pass.isSettled)
            #expect(dropped.pass.outcomes.count == 300)
            #expect(Self.numbers(broker.pass().letters) == (1...5).map(String.init))
        }
    }

    @Test(
        "a queue that does not count deliveries loses nothing either, and keeps nothing",
        arguments: [false, true])
    func uncounted(_ wereSeen: Bool) async throws {
        try await DeadLetterBroker.aside {
            let broker = try DeadLetterBroker()
            try broker.declare(kind: "classic")
            try broker.publish(to: broker.topology.dead, Self.messages(400))
            if wereSeen { #expect(broker.pass().ids.count == 400) }
            var number = 0
            let retried = broker.pass(publishes: true) { _, letter in
                number += 1
                return number.isMultiple(of: 2) ? .retry(RestoredCommand(letter, user: nil)) : .keep
            }
            #expect(retried.pass.isWhole && retried.pass.isSettled)
            #expect(retried.pass.outcomes.count == 200)
            #expect(Self.numbers(broker.pass().letters) == (1...200).map { String($0 * 2 - 1) })
            #expect(broker.pass { _, _ in .drop }.pass.outcomes.count == 200)
            #expect(broker.pass().pass.expected == 0)
        }
    }

    @Test("what the broker itself gave up tells where it was and when")
    func expired() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 0)
            try broker.publish(
                to: broker.topology.commandsExchange, [(Properties(expiration: "1", messageID: "m"), "{}")])
            var letters: [Letter] = []
            while letters.isEmpty { letters = broker.pass().letters }
            let letter = try #require(letters.first)
            #expect(letter.reason == "expired")
            #expect(letter.origin?.queue == broker.topology.commandQueues[0].string)
            #expect(letter.origin?.exchange == broker.topology.commandsExchange.string)
            #expect(letter.time != nil)
            #expect(RestoredCommand(letter, user: nil).properties == Properties(messageID: "m"))
        }
    }

    @Test("without the queue it says so")
    func missing() async throws {
        try await DeadLetterBroker.aside {
            let broker = try DeadLetterBroker()
            let pass = broker.pass().pass
            guard case .noWorker(let text)? = pass.failure else {
                Issue.record("\(String(describing: pass.failure))")
                return
            }
            #expect(text == "there is no queue \(broker.topology.dead)")
        }
    }
}
