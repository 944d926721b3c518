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

    @Test("a letter that dies again during the pass is not met twice")
    func dyingAgain() async throws {
        try await DeadLetterBroker.aside {
            let broker = try Self.broker(letters: 1)
            let pass = broker.pass(publishes: true) { _, letter in
                var restored = letter.properties
                restored.expiration = "0"
                let again = Letter(routingKey: letter.routingKey, properties: restored, body: letter.body)
                return .retry(RestoredCommand(again, user: nil))
            }
            #expect(pass.ids.count == 1)
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
            guard case .missing(let queue)? = pass.failure else {
                Issue.record("\(String(describing: pass.failure))")
                return
            }
            #expect(queue == broker.topology.dead.description)
        }
    }
}
