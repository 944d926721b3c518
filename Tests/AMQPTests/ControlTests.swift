import Testing

@testable import AMQP

/// What an operator does to a broker while a link is on it.
@Suite(.enabled(if: TestBroker.hasControl, TestBroker.noControl), .timeLimit(.minutes(2)))
struct ControlTests {
    @Test("a queue deleted under its consumer is noticed, declared and consumed again")
    func deletedQueue() async throws {
        let queue = try TestBroker.short("queue")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue, durable: true)],
                    consumers: [ConsumerPlan(queue: queue, tag: "c", noAck: true)]),
                ChannelPlan(confirms: true),
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration("deleted-queue"), plans) { link, log in
            _ = try await log.opened(1)
            _ = try await TestBroker.runControl("delete_queue \(queue)")
            let (error, _) = try await log.closed(0)
            #expect(error?.kind == .consumerCancelled)
            #expect(error?.isConfiguration == false)
            _ = try await log.opened(0)
            _ = try await TestBroker.runControl("delete_queue \(queue)")
            #expect(try await log.closed(0).error?.kind == .consumerCancelled)
            _ = try await log.opened(0)
            let publisher = log.all.compactMap { event -> UInt64? in
                if case .channelOpened(1, let generation) = event { return generation }
                return nil
            }
            link.publish(
                [publication(1, exchange: "", key: queue, mandatory: true)], on: 1,
                generation: try #require(publisher.last))
            _ = try await log.delivery(0)
            _ = try await TestBroker.runControl("delete_queue \(queue)")
        }
    }

    @Test("a connection closed by the broker is made anew, and consumes again")
    func closedConnection() async throws {
        let queue = try TestBroker.short("queue")
        let name = TestBroker.unique("closed")
        let plans: @Sendable () -> [ChannelPlan] = {
            [
                ChannelPlan(
                    declare: [TestBroker.queue(queue)], confirms: true,
                    consumers: [ConsumerPlan(queue: queue, tag: "c", noAck: true)])
            ]
        }
        try await TestBroker.withLink(try TestBroker.configuration(name), plans) { link, log in
            _ = try await log.opened(0)
            let listed = try await TestBroker.runControl("list_connections pid client_properties")
            let line = try #require(listed.split(separator: "\n").first { $0.contains(name) })
            let pid = try #require(line.split(separator: "\t").first)
            _ = try await TestBroker.runControl("close_connection '\(pid)' 'test says goodbye'")
            let (error, _) = try await log.closed(0)
            #expect(error?.kind == .otherClose(320))
            #expect(error?.text.contains("goodbye") == true)
            #expect(error?.isConfiguration == false)
            _ = try await log.disconnected()
            let second = try await log.opened(0)
            link.publish(
                [publication(1, exchange: "", key: queue, mandatory: true)], on: 0, generation: second)
            _ = try await log.delivery(0)
        }
    }
}
