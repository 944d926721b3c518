import AMQP
import Contract
import Testing

@testable import Worker

@Suite("Shards and their channels")
struct ShardTests {
    private func plans(_ shards: Int) throws -> WorkerPlans {
        WorkerPlans(settings: try Bench.settings(shards: shards), mode: .active)
    }

    @Test("Each shard has a channel of its own, which opens only when it is asked to", arguments: [1, 2, 8])
    func channels(count: Int) throws {
        let plans = try plans(count)
        let queues = try Topology(shards: count).commandQueues
        #expect(plans.consumer.count == 2 + count)
        for (shard, queue) in queues.enumerated() {
            let plan = plans.consumer[ConsumerChannel.commands(of: shard)]
            #expect(plan.consumers.map(\.queue) == [queue])
            #expect(!plan.startsOpen)
        }
        #expect(plans.consumer.flatMap(\.consumers).count == 2 + count)
    }

    @Test("One queue is declared by its channel; a ring as a whole by one channel, whatever consumes it")
    func declarations() throws {
        let one = try plans(1).consumer[ConsumerChannel.commands].declare
        #expect(one == (try Topology()).declarations(.active, parts: [.dead, .commands]))
        let many = try plans(4)
        for shard in 0..<4 {
            let declared = many.consumer[ConsumerChannel.commands(of: shard)].declare
            #expect(declared.count == 4, "the dead letters and its own queue")
            #expect(declared.allSatisfy { if case .bindExchange = $0.declaration { false } else { true } })
        }
        let ring = try Topology(shards: 4).declarations(.active, parts: [.commands])
        let whole = many.publisher[PublisherChannel.topology].declare
        #expect(Array(whole.suffix(ring.count)) == ring)
    }

    @Test(
        "A worker with all shards holds about what one without shards does, one with few no small batches",
        arguments: [(1, 2_048), (2, 2_048), (4, 1_024), (8, 512), (16, 256), (256, 256)])
    func prefetch(shards: Int, expected: Int) throws {
        let plans = try plans(shards)
        #expect(plans.consumer[ConsumerChannel.commands].prefetch == UInt16(expected))
        let large = plans.consumer.dropFirst(2).reduce(0) { $0 + $1.largeBodyBudget }
        #expect(large <= WorkerPlans.largeBodyBudget)
    }

    @Test("The start waits for the ring where there is one, and gives up where it is refused")
    func gate() throws {
        for (shards, channel) in [(1, ConsumerChannel.commands), (4, PublisherChannel.topology)] {
            let link = shards == 1 ? "consumer" : "publisher"
            var gate = try plans(shards).startGate
            let others = (0..<2).map { ("consumer", $0) } + (0..<3).map { ("publisher", $0) }
            for (other, number) in others {
                _ = gate.note(.channelOpened(number, generation: 1), of: other)
            }
            #expect(!gate.hasStarted)
            let missing = AMQPError(
                scope: .channel, kind: .notFound, code: 404, text: "no exchange", isConfiguration: true)
            let closed = LinkEvent.channelClosed(channel, generation: 1, missing, unknown: [])
            let answers = (0..<5).map { _ in gate.note(closed, of: link) }
            #expect(answers.last == missing)
            _ = gate.note(.channelOpened(channel, generation: 2), of: link)
            #expect(gate.hasStarted)
        }
    }

    // MARK: The state of each shard

    private func steps(
        _ shards: inout Shards, at uptime: Int64, done: Bool = true, open: Bool = true
    ) -> [Shards.Step] {
        shards.steps(at: uptime, grace: 5_000, isDone: { _ in done }, isOpen: { _ in open })
    }

    @Test("What is wanted is opened once; what is not any more is finished first, then closed")
    func handOver() {
        var shards = Shards(count: 4)
        #expect(steps(&shards, at: 0) == [])
        shards.want([0, 2])
        #expect(steps(&shards, at: 0) == [.open(0), .open(2)])
        #expect(steps(&shards, at: 1) == [])
        shards.want([0])
        #expect(steps(&shards, at: 2, done: false) == [.stopDeciding(2)])
        #expect(!shards.isConsumed(2) && shards.isConsumed(0) && shards.isHandingOver)
        #expect(steps(&shards, at: 3, done: false) == [])
        #expect(steps(&shards, at: 4) == [.close(2)])
        #expect(!shards.isHandingOver)
        shards.closed(2)
        #expect(steps(&shards, at: 5) == [])
    }

    @Test("It is closed when its time is over, whatever is in hand")
    func bounded() {
        var shards = Shards(count: 1)
        shards.want([0])
        _ = steps(&shards, at: 0)
        shards.want([])
        _ = steps(&shards, at: 0, done: false)
        #expect(steps(&shards, at: 4_999, done: false) == [])
        #expect(steps(&shards, at: 5_000, done: false) == [.close(0)])
    }

    @Test("One that returns meanwhile is closed all the same, and opened when that has happened")
    func returns() {
        var shards = Shards(count: 1)
        shards.want([0])
        _ = steps(&shards, at: 0)
        shards.want([])
        _ = steps(&shards, at: 0, done: false)
        shards.want([0])
        #expect(steps(&shards, at: 1, done: false) == [])
        #expect(!shards.isConsumed(0), "its deliveries were let go of")
        #expect(steps(&shards, at: 2) == [.close(0)])
        #expect(steps(&shards, at: 3) == [])
        shards.closed(0)
        #expect(steps(&shards, at: 4) == [.open(0)])
    }

    @Test(
        "A channel that is lost while it is handed over is closed at once; one never opened is not waited for"
    )
    func lost() {
        var shards = Shards(count: 1)
        shards.want([0])
        _ = steps(&shards, at: 0)
        shards.want([])
        _ = steps(&shards, at: 0, done: false)
        shards.closed(0)
        shards.want([0])
        #expect(steps(&shards, at: 1, done: false, open: false) == [.close(0)])
        #expect(steps(&shards, at: 1_000, open: false) == [])
        #expect(steps(&shards, at: 1_001, open: false) == [.open(0)])
    }

    @Test("Given up, all are closed at once, and none is wanted")
    func givenUp() {
        var shards = Shards(count: 3)
        shards.want([0, 1])
        _ = steps(&shards, at: 0)
        #expect(shards.giveUp(at: 1) == [0, 1])
        #expect(shards.giveUp(at: 1) == [])
        shards.want([0])
        shards.closed(0)
        #expect(steps(&shards, at: 2) == [.open(0)])
    }
}
