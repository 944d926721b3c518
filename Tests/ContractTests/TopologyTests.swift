import AMQP
import Contract
import Testing

@Suite("Topology")
struct TopologyTests {
    static let commandArguments =
        "x-queue-type=quorum x-single-active-consumer=true x-delivery-limit=200 x-dead-letter-exchange=overtime.dead "
        + "x-dead-letter-strategy=at-least-once x-overflow=reject-publish"

    static let shared = [
        "exchange overtime.dead fanout durable",
        "queue overtime.dead durable x-queue-type=quorum x-delivery-limit=1000000",
        "bind overtime.dead <- overtime.dead ''",
        "exchange overtime.events fanout durable", "exchange overtime.events.topic topic durable",
        "bind exchange overtime.events.topic <- overtime.events ''",
        "exchange overtime.queries fanout durable", "queue overtime.queries durable x-message-ttl=30000",
        "bind overtime.queries <- overtime.queries ''",
        "exchange overtime.ticks fanout durable",
        "queue overtime.ticks durable x-message-ttl=60000 x-max-length=10000",
        "bind overtime.ticks <- overtime.ticks ''",
    ]

    @Test("one shard has one queue")
    func oneShard() throws {
        let topology = try Topology()
        #expect(
            topology.declarations(.active).map(spell)
                == Self.shared + [
                    "exchange overtime.commands topic durable",
                    "queue overtime.commands durable \(Self.commandArguments)",
                    "bind overtime.commands <- overtime.commands '#'",
                ])
        #expect(topology.commandQueues == ["overtime.commands"])
    }

    @Test("several shards have a ring that is complete before commands flow into it")
    func threeShards() throws {
        let topology = try Topology(shards: 3)
        #expect(
            topology.declarations(.active).map(spell)
                == Self.shared + [
                    "exchange overtime.commands topic durable",
                    "exchange overtime.commands.shards x-consistent-hash durable",
                    "queue overtime.commands.0 durable \(Self.commandArguments)",
                    "queue overtime.commands.1 durable \(Self.commandArguments)",
                    "queue overtime.commands.2 durable \(Self.commandArguments)",
                    "bind overtime.commands.0 <- overtime.commands.shards '1'",
                    "bind overtime.commands.1 <- overtime.commands.shards '1'",
                    "bind overtime.commands.2 <- overtime.commands.shards '1'",
                    "bind exchange overtime.commands.shards <- overtime.commands '#'",
                ])
        #expect(
            topology.commandQueues == ["overtime.commands.0", "overtime.commands.1", "overtime.commands.2"])
    }

    @Test("in a cluster ticks and queries are replicated too, and nothing else changes")
    func cluster() throws {
        let expected = try Topology().declarations(.active).map(spell).map { line in
            line.hasPrefix("queue overtime.queries ") || line.hasPrefix("queue overtime.ticks ")
                ? line + " x-queue-type=quorum" : line
        }
        #expect(try Topology(isCluster: true).declarations(.active).map(spell) == expected)
    }

    @Test("the log stands by itself and can be left out")
    func log() throws {
        #expect(
            try Topology().logDeclarations(.active).map(spell) == [
                "queue overtime.events.log durable x-queue-type=stream x-max-age=7D x-max-length-bytes=2000000000",
                "bind overtime.events.log <- overtime.events ''",
            ])
        #expect(try Topology(logMaxAge: nil).logDeclarations(.active) == [])
    }

    @Test("replies have an exchange where the configuration says so")
    func replies() throws {
        let topology = try Topology(replies: .exchange)
        #expect(
            topology.declarations(.active).map(spell).contains("exchange overtime.replies direct durable"))
        #expect(topology.repliesExchange == "overtime.replies")
        #expect(try Topology().repliesExchange == "")
    }

    @Test("a mode goes to every step, and a component may ask for its parts")
    func modes() throws {
        let topology = try Topology()
        #expect(topology.declarations(.passive).allSatisfy { $0.mode == .passive })
        #expect(
            topology.declarations(.active, parts: [.ticks]).map(spell)
                == Self.shared.filter { $0.contains("ticks") })
    }

    @Test("every name begins with the prefix")
    func prefix() throws {
        let topology = try Topology(prefix: "test.1", shards: 2, replies: .exchange)
        for step in topology.declarations(.active) + topology.logDeclarations(.active) {
            #expect(spell(step).contains(" test.1.") && !spell(step).contains("overtime"))
        }
    }

    @Test("an own queue is exclusive and always declared")
    func ownQueue() throws {
        let plain = try #require(try Topology().ownQueue(component: "send", token: "k3", takesReplies: true))
        #expect(plain.name == "overtime.own.send.k3")
        #expect(plain.declarations.map(spell) == ["queue overtime.own.send.k3 exclusive auto-delete"])
        let topology = try Topology(replies: .exchange)
        let own = try #require(
            topology.ownQueue(
                component: "scheduler", token: "k3", bindings: topology.bindings(to: EventType.timing),
                takesReplies: true,
                arguments: ["x-max-length": .int32(5)]))
        #expect(
            own.declarations.map(spell) == [
                "queue overtime.own.scheduler.k3 exclusive auto-delete x-max-length=5",
                "bind overtime.own.scheduler.k3 <- overtime.events.topic 'session.started'",
                "bind overtime.own.scheduler.k3 <- overtime.events.topic 'session.window.opened'",
                "bind overtime.own.scheduler.k3 <- overtime.events.topic 'session.extended'",
                "bind overtime.own.scheduler.k3 <- overtime.events.topic 'session.ended'",
                "bind overtime.own.scheduler.k3 <- overtime.replies 'overtime.own.scheduler.k3'",
            ])
        #expect(own.declarations.allSatisfy { $0.mode == .active })
        #expect(topology.ownQueue(component: String(repeating: "x", count: 255), token: "") == nil)
    }

    @Test(
        "what cannot be a topology is refused",
        arguments: [
            ("", 1, "7D"), ("a b", 1, "7D"), ("é", 1, "7D"), ("amq", 1, "7D"), ("amq.x", 1, "7D"),
            (String(repeating: "x", count: 129), 1, "7D"), ("x", 0, "7D"), ("x", 1_025, "7D"), ("x", 1, "7"),
            ("x", 1, "D"), ("x", 1, "7d"), ("x", 1, "0D"), ("x", 1, "7 D"), ("x", 1, ""),
        ])
    func refused(prefix: String, shards: Int, age: String) {
        #expect(throws: Topology.Problem.self) {
            try Topology(prefix: prefix, shards: shards, logMaxAge: age)
        }
    }

    @Test(
        "the log's age is written in either way",
        arguments: [
            ("7d", "7D"), ("7D", "7D"), ("12h", "12h"), ("30m", "30m"), ("1Y", "1Y"), ("1M", "1M"),
            ("off", nil),
            ("-1d", nil), ("0d", nil), ("7", nil), ("007d", "7D"), ("007h", "7h"), ("7dd", nil),
            ("9999999999d", nil),
        ] as [(String, String?)])
    func ages(text: String, argument: String?) {
        #expect(LogAge.argument(text) == argument)
    }

    /// A declaration on one line.
    private func spell(_ step: DeclarationStep) -> String {
        switch step.declaration {
        case .exchange(let name, let kind, let durable, let autoDelete, let isInternal, let arguments):
            line(
                "exchange \(name) \(kind)", flags: (durable, "durable"), (autoDelete, "auto-delete"),
                (isInternal, "internal"), arguments)
        case .queue(let name, let durable, let exclusive, let autoDelete, let arguments):
            line(
                "queue \(name)", flags: (durable, "durable"), (exclusive, "exclusive"),
                (autoDelete, "auto-delete"),
                arguments)
        case .bindQueue(let queue, let exchange, let key, let arguments):
            line(
                "bind \(queue) <- \(exchange) '\(key)'", flags: (false, ""), (false, ""), (false, ""),
                arguments)
        case .bindExchange(let destination, let source, let key, let arguments):
            line(
                "bind exchange \(destination) <- \(source) '\(key)'", flags: (false, ""), (false, ""),
                (false, ""), arguments)
        }
    }

    private func line(
        _ beginning: String, flags first: (Bool, String), _ second: (Bool, String), _ third: (Bool, String),
        _ arguments: Table
    ) -> String {
        let words = [first, second, third].filter(\.0).map(\.1)
        let pairs = arguments.entries.map { entry in
            switch entry.value {
            case .string(let bytes): "\(entry.key)=\(bytes.text)"
            case .bool(let flag): "\(entry.key)=\(flag)"
            default: "\(entry.key)=\(entry.value.integer.map(String.init) ?? "?")"
            }
        }
        return ([beginning] + words + pairs).joined(separator: " ")
    }
}
