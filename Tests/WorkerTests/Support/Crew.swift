import AMQP
import Contract
import MemoryStore
import RoomCore
import Store

@testable import Worker

/// Several workers on one shared store, and a broker played by hand that lets one of them at a time consume a shard.
final class Crew {
    struct Message: Equatable {
        let name: String
        let properties: Properties
        let body: [UInt8]
        var redelivered = false
    }

    struct Published {
        let worker: String
        let channel: Int
        let publication: Publication
    }

    let shards: Int
    let disk = MemoryDisk()
    let storeClock = TestClock(Bench.noon)
    let folder: TemporaryFolder
    let logFile: LogFile
    private(set) var members: [Member] = []
    var uptime: Int64 = 5_000_000
    /// Messages by the number of the consuming channel, which is the same for all workers.
    var queues: [Int: [Message]] = [:]
    /// Who consumes a channel's queue, the active one first.
    private var consumers: [Int: [Member]] = [:]
    private(set) var published: [Published] = []
    private(set) var acknowledged: [String] = []
    var verdict: (Member, Int) -> FakeBroker.Verdict = { _, _ in .confirm }
    private var lastGeneration: UInt64 = 0

    init(shards: Int) throws {
        self.shards = shards
        folder = try TemporaryFolder()
        logFile = LogFile(folder: folder)
    }

    // MARK: Workers come and go

    /// A worker that has connected.
    @discardableResult
    func join(
        _ name: String, shards: Int? = nil, clockBehind: Int64 = 0, gate: (any MemoryStore.Gate)? = nil
    ) throws -> Member {
        let member = try Member(name, self, shards ?? self.shards, clockBehind: clockBehind, gate: gate)
        members.append(member)
        connect(member)
        return member
    }

    func connect(_ member: Member) {
        member.isConnected = true
        member.handle(.consumer(.connected(brokerVersion: "4", properties: Table())))
        member.handle(.publisher(.connected(brokerVersion: "4", properties: Table())))
        for channel in [
            PublisherChannel.events, PublisherChannel.replies, PublisherChannel.letters,
            PublisherChannel.topology,
        ] {
            member.handle(.publisher(.channelOpened(channel, generation: generation())))
        }
        open(ConsumerChannel.queries, of: member)
        for channel in member.wishes.sorted() { open(channel, of: member) }
        settle()
    }

    /// Killed: the broker notices at once.
    func kill(_ member: Member) {
        members.removeAll { $0 === member }
        drop(member)
    }

    /// Both connections are lost, as the broker sees it; the worker hears of it unless it is frozen.
    func disconnect(_ member: Member) {
        let open = member.open
        drop(member)
        guard !member.isFrozen else { return }
        hearLoss(member, of: open)
    }

    /// It goes on before it hears of anything: its connections have threads of their own.
    func thaw(_ member: Member) {
        member.isFrozen = false
        _ = turn(member)
        guard !member.isConnected else { return }
        hearLoss(member, of: member.openAtFreeze)
        connect(member)
    }

    func freeze(_ member: Member) {
        member.isFrozen = true
        member.openAtFreeze = member.open
        member.frozenAt = uptime
    }

    private func hearLoss(_ member: Member, of open: [Int: UInt64]) {
        for (channel, generation) in open.sorted(by: { $0.key < $1.key }) {
            member.handle(
                .consumer(.channelClosed(channel, generation: generation, Bench.lost, unknown: [])))
        }
        for channel in 0..<3 {
            let end = LinkEvent.channelClosed(channel, generation: 0, Bench.lost, unknown: [])
            member.handle(.publisher(end))
        }
        member.handle(.consumer(.disconnected(Bench.lost, retryInMilliseconds: 100)))
        member.handle(.publisher(.disconnected(Bench.lost, retryInMilliseconds: 100)))
    }

    private func drop(_ member: Member) {
        member.isConnected = false
        member.outstanding = []
        for channel in member.open.keys.sorted() { _ = end(channel, of: member) }
    }

    // MARK: Messages

    func command(
        _ name: String, _ kind: String, _ room: String, shard: Int, user: String? = nil, id: Bool = true,
        redelivered: Bool = false
    ) {
        let who = user.map { #","user":"\#($0)""# } ?? ""
        let key = id ? #","id":"\#(name)""# : ""
        put(
            Message(
                name: name,
                properties: Properties(correlationID: ShortString(name), replyTo: "me"),
                body: Array(#"{"command":"\#(kind)","room":"\#(room)"\#(key)\#(who)}"#.utf8),
                redelivered: redelivered), on: ConsumerChannel.commands(of: shard))
    }

    func put(_ message: Message, on channel: Int) {
        queues[channel, default: []].append(message)
        deliver(channel)
    }

    /// Hands a tick to one worker.
    func tick(_ rooms: [RoomID], to member: Member) {
        guard let generation = member.open[ConsumerChannel.ticks] else { return }
        let body = Tick(scheduler: "s", rooms: rooms).encode()
        hand(
            Message(name: "tick", properties: Properties(replyTo: "me"), body: body),
            ConsumerChannel.ticks, generation, to: member)
    }

    func query(_ body: String, to member: Member) {
        guard let generation = member.open[ConsumerChannel.queries] else { return }
        hand(
            Message(name: "query", properties: Properties(replyTo: "me"), body: Array(body.utf8)),
            ConsumerChannel.queries, generation, to: member)
    }

    private func deliver(_ channel: Int) {
        guard let active = consumers[channel]?.first, !active.isFrozen, let generation = active.open[channel]
        else { return }
        let messages = queues[channel] ?? []
        queues[channel] = []
        for message in messages { hand(message, channel, generation, to: active) }
    }

    private func hand(_ message: Message, _ channel: Int, _ generation: UInt64, to member: Member) {
        member.lastNumber += 1
        member.unacknowledged[channel, default: []].append((member.lastNumber, message))
        let tag =
            ConsumerChannel.shard(of: channel).map { shard -> ShortString in
                member.settings.topology.commandQueues[shard]
            } ?? "other"
        member.handle(
            .consumer(
                .delivery(
                    channel,
                    Delivery(
                        consumerTag: tag, tag: DeliveryTag(generation: generation, number: member.lastNumber),
                        redelivered: message.redelivered, exchange: "", routingKey: "r",
                        properties: message.properties, body: .bytes(message.body)))))
    }

    // MARK: Channels

    private func generation() -> UInt64 {
        lastGeneration += 1
        return lastGeneration
    }

    private func open(_ channel: Int, of member: Member) {
        guard member.isConnected, member.open[channel] == nil else { return }
        let generation = generation()
        member.open[channel] = generation
        consumers[channel, default: []].append(member)
        member.handle(.consumer(.channelOpened(channel, generation: generation)))
        deliver(channel)
    }

    /// What is unacknowledged goes back to the front, and the next consumer is the active one.
    private func end(_ channel: Int, of member: Member) -> UInt64? {
        guard let generation = member.open.removeValue(forKey: channel) else { return nil }
        consumers[channel]?.removeAll { $0 === member }
        let back = (member.unacknowledged.removeValue(forKey: channel) ?? []).map { _, message in
            var message = message
            message.redelivered = true
            return message
        }
        if ConsumerChannel.shard(of: channel) != nil {
            queues[channel] = back + (queues[channel] ?? [])
            deliver(channel)
        }
        return generation
    }

    // MARK: Time

    func pass(_ milliseconds: Int64, step: Int64 = 50) {
        var left = milliseconds
        while left > 0 {
            let span = min(step, left)
            left -= span
            uptime += span
            storeClock.advance(span)
            for member in members { member.clock.advance(span) }
            for member in members where member.isFrozen && member.isConnected {
                // Two heartbeats.
                if uptime - member.frozenAt >= 20_000 { disconnect(member) }
            }
            settle()
        }
    }

    /// Lets all go on until nothing more happens at this instant.
    func settle() {
        for _ in 0..<2_000 {
            let isBusy = members.filter { !$0.isFrozen && !$0.worker.isStopped }.map(turn).contains(true)
            guard isBusy else { return }
        }
    }

    private func turn(_ member: Member) -> Bool {
        let wait = member.worker.run(at: uptime)
        var hasReacted = false
        for call in member.publisher.take() {
            guard member.isConnected, case .publish(let publications, let channel, _) = call else { continue }
            let new = publications.map {
                Published(worker: member.name, channel: channel, publication: $0)
            }
            published += new
            member.outstanding += new
        }
        for call in member.consumer.take() {
            hasReacted = true
            switch call {
            case .acknowledge(let tags, let channel): acknowledge(tags, channel, member)
            case .reject(let tag, _, let channel): acknowledge([tag], channel, member)
            case .open(let channel):
                member.wishes.insert(channel)
                open(channel, of: member)
            case .close(let channel):
                member.wishes.remove(channel)
                if let generation = end(channel, of: member) {
                    member.handle(
                        .consumer(.channelClosed(channel, generation: generation, nil, unknown: [])))
                }
            case .publish: break
            }
        }
        let all = member.outstanding
        member.outstanding = []
        for one in all {
            guard verdict(member, one.channel) == .confirm else {
                member.outstanding.append(one)
                continue
            }
            hasReacted = true
            member.handle(.publisher(.confirmed(one.channel, [one.publication.id])))
        }
        return wait == 0 || hasReacted
    }

    private func acknowledge(_ tags: [DeliveryTag], _ channel: Int, _ member: Member) {
        for tag in tags where member.open[channel] == tag.generation {
            guard
                let index = member.unacknowledged[channel]?.firstIndex(where: { $0.number == tag.number }),
                let message = member.unacknowledged[channel]?.remove(at: index)
            else { continue }
            acknowledged.append(message.message.name)
        }
    }

    // MARK: Looking

    /// The events published, as `room:sequence`, copies and all.
    var events: [String] {
        published.filter { $0.channel == PublisherChannel.events }
            .map { $0.publication.properties.messageID?.description ?? "?" }
    }

    func replies(of member: Member) -> [[UInt8]] {
        published.filter { $0.channel == PublisherChannel.replies && $0.worker == member.name }
            .map(\.publication.body)
    }

    /// Which shards each worker actually consumes, by name.
    var owners: [String: [Int]] {
        var owners: [String: [Int]] = [:]
        for shard in 0..<shards {
            guard let active = consumers[ConsumerChannel.commands(of: shard)]?.first else { continue }
            owners[active.name, default: []].append(shard)
        }
        return owners
    }

    func consumers(of shard: Int) -> [String] {
        (consumers[ConsumerChannel.commands(of: shard)] ?? []).map(\.name)
    }

    func room(_ id: RoomID) -> Room? { disk.rooms[id]?.room }

    /// Milliseconds until something is so; nil where it is not within a limit.
    func time(until limit: Int64, _ isSo: () -> Bool) -> Int64? {
        let began = uptime
        while !isSo() {
            guard uptime - began < limit else { return nil }
            pass(50)
        }
        return uptime - began
    }
}

extension Crew {
    /// One worker with its own clock, its store object and what the broker holds of it.
    final class Member {
        let name: String
        let settings: WorkerSettings
        let clock: TestClock
        let store: SharedMemoryStore
        let consumer = FakeLink(fuse: Fuse())
        let publisher = FakeLink(fuse: Fuse())
        let worker: Worker
        private unowned let crew: Crew
        var isConnected = false
        var isFrozen = false
        var frozenAt: Int64 = 0
        var open: [Int: UInt64] = [:]
        var openAtFreeze: [Int: UInt64] = [:]
        var wishes: Set<Int> = []
        var unacknowledged: [Int: [(number: UInt64, message: Message)]] = [:]
        var lastNumber: UInt64 = 0
        var outstanding: [Published] = []

        init(
            _ name: String, _ crew: Crew, _ shards: Int, clockBehind: Int64, gate: (any MemoryStore.Gate)?
        ) throws {
            self.name = name
            self.crew = crew
            settings = try Bench.settings(shards: shards)
            clock = TestClock(crew.storeClock.nowMilliseconds() - clockBehind)
            let storeClock = crew.storeClock
            store = SharedMemoryStore(
                disk: crew.disk, clock: { storeClock.nowMilliseconds() }, gate: gate)
            let identity = RunRow(
                id: name, pid: 1, host: "host-\(name)",
                startedAt: Instant(milliseconds: clock.nowMilliseconds()))
            worker = Worker(
                store: store, consumer: consumer, publisher: publisher, clock: clock, log: crew.logFile.log,
                settings: settings, identity: identity, crashedRuns: try store.beginRun(identity))
        }

        func handle(_ input: Worker.Input) { worker.handle([input], at: crew.uptime) }
    }
}
