import Synchronization
import Testing

@testable import AMQP

/// Peers that are silent, frozen or lying; each is played by a port of the test itself.
@Suite(.timeLimit(.minutes(1)))
struct HostilePeerTests {
    private static let patience = Duration.seconds(2.2)

    private func stopIsBounded(_ link: Link) async throws {
        let took = try await link.stopAside()
        #expect(took < Self.patience, "stop took \(took)")
    }

    @Test("a stop is prompt while a port accepts and says nothing")
    func silentPort() async throws {
        let accepted = EventLog()
        let fake = try FakeBroker { _ in accepted.observer([.unblocked]) }
        let log = EventLog()
        let link = Link(configuration: fake.configuration(), channels: { [] }, observer: log.observer)
        link.start()
        _ = try await accepted.next("a connection") { $0 == .unblocked ? true : nil }
        let took = try await link.stopAside()
        #expect(took < .seconds(1))
        #expect(log.all.last == .stopped)
    }

    @Test("a port that accepts and says nothing is named a handshake timeout")
    func silentHandshake() async throws {
        let fake = try FakeBroker { _ in }
        var configuration = fake.configuration()
        configuration.connectTimeout = .milliseconds(200)
        try await TestBroker.withLink(configuration, { [] }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == .handshakeTimeout)
        }
    }

    @Test("a closed port is unreachable, and a stop meanwhile is prompt")
    func closedPort() async throws {
        var configuration = try FakeBroker { _ in }.configuration()
        configuration.endpoint.port = try FakeBroker.closedPort()
        let log = EventLog()
        let link = Link(configuration: configuration, channels: { [] }, observer: log.observer)
        link.start()
        let error = try await log.disconnected()
        #expect(error.kind == .unreachable)
        let took = try await link.stopAside()
        #expect(took < .seconds(1))
        #expect(log.all.last == .stopped)
    }

    @Test("a stop over TLS is bounded while the port says nothing")
    func silentTLS() async throws {
        let accepted = EventLog()
        let fake = try FakeBroker { _ in accepted.observer([.unblocked]) }
        var configuration = fake.configuration()
        configuration.endpoint.isTLS = true
        let link = Link(configuration: configuration, channels: { [] }, observer: { _ in })
        link.start()
        _ = try await accepted.next("a connection") { $0 == .unblocked ? true : nil }
        try await stopIsBounded(link)
    }

    @Test("a CA file that is not there is a wrong configuration")
    func missingCA() async throws {
        let fake = try FakeBroker { _ in }
        var configuration = fake.configuration()
        configuration.endpoint.isTLS = true
        configuration.caFile = "/nonexistent/ca.pem"
        try await TestBroker.withLink(configuration, { [] }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == .tls)
            #expect(error.isConfiguration)
            #expect(error.text.contains("/nonexistent/ca.pem"))
        }
    }

    @Test("a name that nobody knows is told as such")
    func unknownName() async throws {
        var configuration = try FakeBroker { _ in }.configuration()
        configuration.endpoint.host = "no-such-host.invalid"
        configuration.connectTimeout = .seconds(2)
        try await TestBroker.withLink(configuration, { [] }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == .dns)
        }
    }

    @Test("a peer that talks something else is told as a failed handshake")
    func garbage() async throws {
        let fake = try FakeBroker { peer in
            try peer.write(Array("SSH-2.0-OpenSSH_9.2\r\n and more of that".utf8))
        }
        try await TestBroker.withLink(fake.configuration(), { [] }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == .handshake)
        }
    }

    @Test("a broker that freezes is noticed by its heartbeats")
    func frozen() async throws {
        let fake = try FakeBroker { peer in try peer.welcome(heartbeat: 1) }
        try await TestBroker.withLink(fake.configuration(heartbeatSeconds: 1), { [] }) { _, log in
            let error = try await log.disconnected()
            #expect(error.kind == .heartbeat)
        }
    }

    @Test("a stop is bounded while the broker is frozen")
    func stopFrozen() async throws {
        let fake = try FakeBroker { peer in
            try peer.welcome()
            try peer.await(20, 10)
            try peer.method(20, 11, channel: 1, RawPeer.long([]))
        }
        let log = EventLog()
        let link = Link(
            configuration: fake.configuration(), channels: { [ChannelPlan()] }, observer: log.observer)
        link.start()
        _ = try await log.opened(0)
        try await stopIsBounded(link)
        #expect(log.all.last == .stopped)
    }

    @Test(
        "a publish that hangs on a frozen broker is cut loose, by the watchdog or a stop",
        arguments: [true, false])
    func hangingPublish(stops: Bool) async throws {
        let fake = try FakeBroker { peer in
            try peer.welcome(heartbeat: 1)
            try peer.await(20, 10)
            try peer.method(20, 11, channel: 1, RawPeer.long([]))
            try peer.await(85, 10)
            try peer.method(85, 11, channel: 1)
        }
        let log = EventLog()
        let held = HeldLink()
        // Published by the observer at once: the broker counts as dead two seconds after the login.
        let link = Link(
            configuration: fake.configuration(heartbeatSeconds: 1),
            channels: { [ChannelPlan(confirms: true)] },
            observer: { events in
                for case .channelOpened(0, let generation) in events {
                    let body = [UInt8](repeating: 0, count: 8 << 20)
                    held.link.withLock { $0 }?.publish(
                        (1...4).map { publication($0, body: body) }, on: 0, generation: generation)
                }
                log.observer(events)
            })
        held.link.withLock { $0 = link }
        link.start()
        let generation = try await log.opened(0)
        if !stops {
            let (error, unknown) = try await log.closed(0)
            #expect(error?.kind == .heartbeat)
            #expect(unknown == [1, 2, 3, 4])
        }
        try await stopIsBounded(link)
        #expect(log.all.last == .stopped)
        let closed = log.all.compactMap { event -> [UInt64]? in
            if case .channelClosed(0, generation, _, let unknown) = event { return unknown }
            return nil
        }
        #expect(closed == [[1, 2, 3, 4]])
    }

    @Test("a broker that does not answer a method in time is left")
    func noAnswer() async throws {
        let fake = try FakeBroker { peer in try peer.welcome() }
        var configuration = fake.configuration()
        configuration.rpcTimeout = .milliseconds(200)
        try await TestBroker.withLink(configuration, { [ChannelPlan()] }) { _, log in
            let closed = try await log.closed(0)
            #expect(closed.error?.kind == .rpcTimeout)
            let error = try await log.disconnected()
            #expect(error.kind == .rpcTimeout)
        }
    }

    enum Lie: Sendable, CaseIterable {
        case bodyTooLarge
        case headerOfAnotherClass
        case unknownChannel
        case inventedConfirm
        case unaskedMethod
        case brokenFrame
    }

    @Test("a peer that breaks the protocol is left", arguments: Lie.allCases)
    func lies(_ lie: Lie) async throws {
        let fake = try FakeBroker { peer in
            try peer.welcome()
            try peer.await(20, 10)
            try peer.method(20, 11, channel: 1, RawPeer.long([]))
            try peer.await(85, 10)
            try peer.method(85, 11, channel: 1)
            let deliver =
                RawPeer.short("c") + RawPeer.big(UInt64(1)) + [0] + RawPeer.short("x") + RawPeer.short("k")
            switch lie {
            case .bodyTooLarge:
                try peer.method(60, 60, channel: 1, deliver)
                try peer.write(type: 2, channel: 1, [0, 60, 0, 0] + RawPeer.big(UInt64(3)) + [0, 0])
                try peer.write(type: 3, channel: 1, [1, 2, 3, 4])
            case .headerOfAnotherClass:
                try peer.method(60, 60, channel: 1, deliver)
                try peer.write(type: 2, channel: 1, [0, 90, 0, 0] + RawPeer.big(UInt64(3)) + [0, 0])
            case .unknownChannel: try peer.method(60, 60, channel: 9, deliver)
            case .inventedConfirm: try peer.method(60, 80, channel: 1, RawPeer.big(UInt64(5)) + [0])
            case .unaskedMethod:
                try peer.method(50, 11, channel: 1, RawPeer.short("q") + [0, 0, 0, 0, 0, 0, 0, 0])
            case .brokenFrame: try peer.write([1, 0, 1, 0, 0, 0, 4, 0, 60, 0, 60, 0])
            }
        }
        let plan = ChannelPlan(confirms: true)
        try await TestBroker.withLink(fake.configuration(), { [plan] }) { _, log in
            let closed = try await log.closed(0)
            #expect(closed.error?.kind == .protocolViolation)
            let error = try await log.disconnected()
            #expect(error.kind == .protocolViolation)
        }
    }
}

/// A link that its own observer can reach.
private final class HeldLink: Sendable {
    let link = Mutex<Link?>(nil)
}
