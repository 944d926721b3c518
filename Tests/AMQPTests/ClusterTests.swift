import Testing

@testable import AMQP

/// Several URLs: of fakes, and of fakes beside a real broker.
@Suite(.timeLimit(.minutes(1)))
struct ClusterTests {
    private func configuration(_ fakes: [Endpoint]) throws -> LinkConfiguration {
        var configuration = try FakeBroker { _ in }.configuration()
        configuration.endpoints = try Endpoints(
            urls: fakes.map { "amqp://guest:guest@\($0.address)" })
        return configuration
    }

    private func closed() throws -> Endpoint {
        var endpoint = try FakeBroker { _ in }.endpoint
        endpoint.port = try FakeBroker.closedPort()
        return endpoint
    }

    private static func connected(_ log: EventLog) async throws -> String {
        try await log.next("a connection") { event in
            if case .connected(_, _, let node) = event { return node }
            return nil
        }
    }

    @Test("nodes that refuse cost nothing: the one that answers is found without any wait or word")
    func refusing() async throws {
        let fake = try FakeBroker { peer in try peer.welcome() }
        var configuration = try configuration([closed(), closed(), fake.endpoint, closed()])
        configuration.backoff = Backoff(first: .seconds(30), maximum: .seconds(30))
        try await TestBroker.withLink(configuration, { [] }) { _, log in
            let node = try await Self.connected(log)
            #expect(node == fake.endpoint.address)
            let isTold = log.all.contains { if case .disconnected = $0 { true } else { false } }
            #expect(!isTold)
        }
    }

    @Test("a node that hangs costs the connect time-out once")
    func hanging() async throws {
        let silent = try FakeBroker { _ in }
        let fake = try FakeBroker { peer in try peer.welcome() }
        // Whichever is first: twice the same list, and a start between the two.
        var configuration = try configuration([silent.endpoint, fake.endpoint])
        configuration.connectTimeout = .seconds(1)
        configuration.backoff = Backoff(first: .seconds(300), maximum: .seconds(300))
        let clock = ContinuousClock()
        for _ in 0..<3 {
            let began = clock.now
            try await TestBroker.withLink(configuration, { [] }) { _, log in
                let node = try await Self.connected(log)
                #expect(node == fake.endpoint.address)
            }
            #expect(clock.now - began < .seconds(60), "far from a backoff")
        }
    }

    @Test("when no node answers, one wait follows each round, and one word")
    func none() async throws {
        let configuration = try configuration([closed(), closed(), closed()])
        try await TestBroker.withLink(configuration, { [] }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == .unreachable)
            let hosts = configuration.endpoints.all.map(\.address)
            #expect(hosts.contains { error.text.hasPrefix("\($0): ") }, "\(error)")
            #expect(error.text.hasSuffix("refused"))
            _ = try await log.disconnected()
        }
    }

    @Test("a lost connection goes on with the next node")
    func next() async throws {
        // Both let everybody in and close at once.
        let nodes = try (0..<2).map { _ in
            try FakeBroker { peer in
                try peer.welcome()
                try peer.method(10, 50, RawPeer.big(UInt16(320)) + RawPeer.short("closing") + [0, 0, 0, 0])
            }
        }
        try await TestBroker.withLink(try configuration(nodes.map(\.endpoint)), { [] }) { _, log in
            var seen: [String] = []
            for _ in 0..<4 { seen.append(try await Self.connected(log)) }
            #expect(seen[0] != seen[1] && seen[0] == seen[2] && seen[1] == seen[3], "\(seen)")
        }
    }

    @Test(
        "a wrong password is wrong only where every node that answers says so",
        .enabled(if: TestBroker.isThere, TestBroker.noBroker))
    func wrongPassword() async throws {
        var wrong = try TestBroker.endpoint()
        wrong.password = Secret("wrong")
        let silent = try FakeBroker { peer in try peer.write(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) }
        for (other, isConfiguration) in [(try closed(), true), (silent.endpoint, false)] {
            var configuration = try TestBroker.configuration("several")
            configuration.endpoints = try Endpoints(
                urls: [other, wrong].map { "amqp://guest:wrong@\($0.address)" })
            try await TestBroker.withLink(configuration, { [] }) { _, log in
                let error = try await log.disconnected()
                #expect(error.isConfiguration == isConfiguration, "\(error)")
                #expect(!"\(error)".contains("wrong@"))
            }
        }
    }

    @Test("the names of two nodes are looked up apart: one that hangs is not taken for the other")
    func resolving() throws {
        let hang = try #require(WakeUp())
        let resolver = Resolver { host, port in
            if host == "hangs" { _ = hang.wait(milliseconds: 10_000) }
            return .addresses([SocketAddress(family: Int32(port), bytes: [])])
        }
        let stop = try #require(WakeUp())
        let error = #expect(throws: AMQPError.self) {
            try resolver.resolve(host: "hangs", port: 1, timeout: .milliseconds(50), stop: stop)
        }
        #expect(error?.kind == .dns)
        let found = try resolver.resolve(host: "answers", port: 2, timeout: .seconds(5), stop: stop)
        #expect(found == [SocketAddress(family: 2, bytes: [])])
        hang.signal()
        let late = try resolver.resolve(host: "hangs", port: 1, timeout: .seconds(5), stop: stop)
        #expect(late == [SocketAddress(family: 1, bytes: [])])
    }
}
