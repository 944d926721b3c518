import Testing

@testable import AMQP

@Suite struct ConfirmLedgerTests {
    enum Step {
        case publish(ClosedRange<UInt64>)
        case mandatory(UInt64, key: ShortString, messageID: ShortString?)
        case back(key: ShortString, messageID: ShortString?)
        case ack(UInt64)
        case ackAll(UInt64)
        case nack(UInt64)
        case nackAll(UInt64)
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var steps: [Step]
        var confirmed: [UInt64] = []
        var refused: [UInt64] = []
        var returned: [UInt64] = []
        var unknown: [UInt64] = []

        init(
            _ name: String, _ steps: [Step], confirmed: [UInt64] = [], refused: [UInt64] = [],
            returned: [UInt64] = [], unknown: [UInt64] = []
        ) {
            testDescription = name
            self.steps = steps
            self.confirmed = confirmed
            self.refused = refused
            self.returned = returned
            self.unknown = unknown
        }
    }

    static let cases: [Case] = [
        Case("one by one", [.publish(11...13), .ack(1), .ack(2), .ack(3)], confirmed: [11, 12, 13]),
        Case("out of order", [.publish(11...13), .ack(3), .ack(1), .ack(2)], confirmed: [13, 11, 12]),
        Case("all up to one", [.publish(11...15), .ackAll(3)], confirmed: [11, 12, 13], unknown: [14, 15]),
        Case("zero with multiple is all so far", [.publish(11...13), .ackAll(0)], confirmed: [11, 12, 13]),
        Case("zero with multiple of nothing", [.ackAll(0)]),
        Case(
            "a hole is filled by a later multiple", [.publish(11...14), .ack(2), .ackAll(4)],
            confirmed: [12, 11, 13, 14]),
        Case(
            "refused among confirmed", [.publish(11...13), .nack(2), .ackAll(3)], confirmed: [11, 13],
            refused: [12]),
        Case("all up to one refused", [.publish(11...13), .nackAll(2)], refused: [11, 12], unknown: [13]),
        Case("told twice", [.publish(11...12), .ack(1), .ack(1), .nack(1)], confirmed: [11], unknown: [12]),
        Case(
            "multiple over what is settled", [.publish(11...12), .ackAll(2), .ackAll(1)], confirmed: [11, 12]),
        Case("nothing told", [.publish(11...12)], unknown: [11, 12]),
        Case(
            "returned, then acknowledged",
            [.mandatory(1, key: "a", messageID: "m"), .back(key: "a", messageID: "m"), .ack(1)], returned: [1]
        ),
        Case(
            "returned without acknowledgement is unknown",
            [.mandatory(1, key: "a", messageID: "m"), .back(key: "a", messageID: "m")], unknown: [1]),
        Case(
            "the message id tells which came back",
            [
                .mandatory(1, key: "a", messageID: "m1"), .mandatory(2, key: "a", messageID: "m2"),
                .back(key: "a", messageID: "m2"), .ackAll(2),
            ], confirmed: [1], returned: [2]),
        Case(
            "without message ids the oldest is meant",
            [
                .mandatory(1, key: "a", messageID: nil), .mandatory(2, key: "a", messageID: nil),
                .mandatory(3, key: "b", messageID: nil), .back(key: "a", messageID: nil), .ackAll(3),
            ], confirmed: [2, 3], returned: [1]),
        Case(
            "two of the same id come back in order",
            [
                .mandatory(1, key: "a", messageID: "m"), .mandatory(2, key: "a", messageID: "m"),
                .back(key: "a", messageID: "m"), .ack(1), .back(key: "a", messageID: "m"), .ack(2),
            ], returned: [1, 2]),
        Case(
            "a stranger came back", [.publish(1...1), .back(key: "a", messageID: "m"), .ack(1)],
            confirmed: [1]),
    ]

    @Test("every publication ends exactly once", arguments: cases)
    func sequence(_ one: Case) throws {
        var ledger = ConfirmLedger()
        var outcomes = ConfirmLedger.Outcomes()
        func settle(_ tag: UInt64, _ multiple: Bool, _ isAck: Bool) throws {
            let more = try ledger.settle(tag: tag, multiple: multiple, isAck: isAck)
            outcomes.confirmed += more.confirmed
            outcomes.refused += more.refused
            outcomes.returned += more.returned
        }
        for step in one.steps {
            switch step {
            case .publish(let ids): for id in ids { ledger.published(publication(id)) }
            case .mandatory(let id, let key, let messageID):
                ledger.published(publication(id, key: key, mandatory: true, messageID: messageID))
            case .back(let key, let messageID):
                ledger.returned(
                    ReturnMethod(code: 312, text: "NO_ROUTE", exchange: "x", routingKey: key),
                    messageID: messageID)
            case .ack(let tag): try settle(tag, false, true)
            case .ackAll(let tag): try settle(tag, true, true)
            case .nack(let tag): try settle(tag, false, false)
            case .nackAll(let tag): try settle(tag, true, false)
            }
        }
        #expect(outcomes.confirmed == one.confirmed)
        #expect(outcomes.refused == one.refused)
        #expect(outcomes.returned.map(\.id) == one.returned)
        #expect(ledger.openCount == one.unknown.count)
        #expect(ledger.takeUnknown() == one.unknown)
    }

    @Test(
        "a number that was never given out ends the connection",
        arguments: [(3, false), (3, true), (0, false)])
    func invented(tag: UInt64, multiple: Bool) throws {
        var ledger = ConfirmLedger()
        ledger.published(publication(1))
        ledger.published(publication(2))
        #expect(throws: AMQPError.self) { try ledger.settle(tag: tag, multiple: multiple, isAck: true) }
        #expect(ledger.takeUnknown() == [1, 2])
    }

    @Test("numbers start at one again in a new generation")
    func newGeneration() throws {
        var ledger = ConfirmLedger()
        ledger.published(publication(1))
        _ = ledger.takeUnknown()
        ledger.published(publication(7))
        #expect(try ledger.settle(tag: 1, multiple: false, isAck: true).confirmed == [7])
    }

    @Test("a long life keeps its arithmetic")
    func longLife() throws {
        var ledger = ConfirmLedger()
        var confirmed: [UInt64] = []
        for id in 1...UInt64(20_000) {
            ledger.published(publication(id))
            if id % 7 == 0 {
                confirmed += try ledger.settle(tag: id - 3, multiple: true, isAck: true).confirmed
            }
            if id % 11 == 0 {
                confirmed += try ledger.settle(tag: id, multiple: false, isAck: true).confirmed
            }
        }
        confirmed += try ledger.settle(tag: 0, multiple: true, isAck: true).confirmed
        #expect(confirmed.count == 20_000)
        #expect(Set(confirmed).count == 20_000)
        #expect(ledger.openCount == 0)
    }
}

func publication(
    _ id: UInt64, exchange: ShortString = "x", key: ShortString = "k", mandatory: Bool = false,
    messageID: ShortString? = nil, properties: Properties = Properties(), body: [UInt8] = []
) -> Publication {
    var properties = properties
    properties.messageID = messageID ?? properties.messageID
    return Publication(
        id: id, exchange: exchange, routingKey: key, mandatory: mandatory, properties: properties, body: body)
}
