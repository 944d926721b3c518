import Testing

@testable import AMQP

@Suite struct NodeRoundTests {
    private static let down = AMQPError(scope: .connection, kind: .unreachable, text: "connect: refused")
    private static let wrong = AMQPError(
        scope: .connection, kind: .accessRefused, code: 403, text: "login refused", isConfiguration: true)
    private static let busy = AMQPError(scope: .connection, kind: .otherClose(541), code: 541, text: "busy")

    private func nodes(_ count: Int) throws -> Endpoints {
        try Endpoints(urls: (1...count).map { "amqp://n\($0)" })
    }

    /// Fails at each node once; the hosts in turn and what it came to.
    private func fail(_ round: inout NodeRound, _ errors: [AMQPError]) -> ([String], AMQPError?) {
        var hosts: [String] = []
        for error in errors {
            let node = round.take()
            hosts.append(node.host)
            if let reason = round.failed(error, at: node) { return (hosts, reason) }
        }
        return (hosts, nil)
    }

    @Test("a round goes through all nodes once, and the next one goes on in the same order")
    func order() throws {
        var round = NodeRound(try nodes(3), startingAt: 4)
        let (first, reason) = fail(&round, [Self.down, Self.down, Self.down, Self.down])
        #expect(first == ["n2", "n3", "n1"])
        #expect(reason?.text == "n1:5672: connect: refused")
        let (second, none) = fail(&round, [Self.down, Self.down])
        #expect(second == ["n2", "n3"] && none == nil)
        round.succeeded()
        #expect(fail(&round, [Self.down, Self.down, Self.down]).0 == ["n1", "n2", "n3"])
        for start in [Int.min, -1, Int.max] { _ = NodeRound(try nodes(3), startingAt: start) }
    }

    @Test("a single node's error is told as it is")
    func single() throws {
        var round = NodeRound(try nodes(1), startingAt: 7)
        #expect(fail(&round, [Self.wrong]).1 == Self.wrong)
    }

    @Test(
        "wrong for good is what all nodes that answer find wrong",
        arguments: [
            ([down, wrong, down], true), ([wrong, wrong, wrong], true), ([wrong, down, busy], false),
            ([busy, wrong, wrong], false), ([down, down, down], false),
        ])
    func verdict(errors: [AMQPError], isConfiguration: Bool) throws {
        var round = NodeRound(try nodes(3), startingAt: 0)
        #expect(fail(&round, errors).1?.isConfiguration == isConfiguration)
    }
}
