import Testing

@testable import AMQP

@Suite struct ContentAssemblerTests {
    private static let method = ContentAssembler.Method.deliver(
        DeliverMethod(consumerTag: "c", deliveryTag: 1, redelivered: false, exchange: "x", routingKey: "k"))

    @Test("an empty body is complete with its header")
    func empty() throws {
        var assembler = ContentAssembler(maximumBodyBytes: 10)
        try assembler.begin(Self.method)
        #expect(try assembler.header(bodySize: 0, properties: Properties())?.body == .bytes([]))
        #expect(!assembler.isInsideContent)
    }

    @Test("a body comes in any number of parts, empty ones too")
    func parts() throws {
        var assembler = ContentAssembler(maximumBodyBytes: 10)
        try assembler.begin(Self.method)
        #expect(try assembler.header(bodySize: 5, properties: Properties()) == nil)
        #expect(try assembler.body([1, 2]) == nil)
        #expect(try assembler.body([]) == nil)
        #expect(assembler.isInsideContent)
        #expect(try assembler.body([3, 4, 5])?.body == .bytes([1, 2, 3, 4, 5]))
        #expect(!assembler.isInsideContent)
    }

    @Test(
        "a body up to the limit is held, beyond it dropped", arguments: [(9, true), (10, true), (11, false)])
    func limit(size: Int, isHeld: Bool) throws {
        var assembler = ContentAssembler(maximumBodyBytes: 10)
        try assembler.begin(Self.method)
        _ = try assembler.header(bodySize: UInt64(size), properties: Properties())
        _ = try assembler.body([UInt8](repeating: 7, count: size - 1))
        let content = try assembler.body([7])
        #expect(
            content?.body
                == (isHeld ? .bytes([UInt8](repeating: 7, count: size)) : .discarded(size: UInt64(size))))
    }

    @Test(
        "a body that is not small and beyond the budget is dropped",
        arguments: [
            (65_536, 0, true), (65_537, 65_536, false), (65_537, 65_537, true), (100_000, -1, false),
            (65_536, -1, true),
        ])
    func budget(size: Int, budget: Int, isHeld: Bool) throws {
        var assembler = ContentAssembler(maximumBodyBytes: .max)
        try assembler.begin(Self.method)
        _ = try assembler.header(
            bodySize: UInt64(size), properties: Properties(), largeBodyBudget: budget)
        let content = try assembler.body([UInt8](repeating: 7, count: size))
        #expect((content?.body == .discarded(size: UInt64(size))) != isHeld)
    }

    @Test("an announcement alone allocates nothing")
    func announcement() throws {
        var assembler = ContentAssembler(maximumBodyBytes: .max)
        try assembler.begin(Self.method)
        #expect(try assembler.header(bodySize: .max, properties: Properties()) == nil)
        #expect(try assembler.body([1]) == nil)
    }

    @Test("a body larger than announced is a violation", arguments: [10, 1 << 20])
    func tooLarge(maximum: Int) throws {
        var assembler = ContentAssembler(maximumBodyBytes: maximum)
        try assembler.begin(Self.method)
        _ = try assembler.header(bodySize: 3, properties: Properties())
        #expect(throws: AMQPError.self) { try assembler.body([1, 2, 3, 4]) }
    }

    @Test("frames out of turn are violations")
    func outOfTurn() throws {
        var assembler = ContentAssembler(maximumBodyBytes: 10)
        #expect(throws: AMQPError.self) { try assembler.header(bodySize: 1, properties: Properties()) }
        #expect(throws: AMQPError.self) { try assembler.body([1]) }
        try assembler.begin(Self.method)
        #expect(throws: AMQPError.self) { try assembler.begin(Self.method) }
        #expect(throws: AMQPError.self) { try assembler.body([1]) }
        _ = try assembler.header(bodySize: 1, properties: Properties())
        #expect(throws: AMQPError.self) { try assembler.header(bodySize: 1, properties: Properties()) }
    }
}
