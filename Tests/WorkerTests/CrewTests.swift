import AMQP
import Contract
import MemoryStore
import RoomCore
import Store
import Testing

@testable import Worker

@Suite("Several workers on one store")
struct CrewTests {
    /// A crew that has been together for a while.
    private func crew(_ names: [String], shards: Int = 4) throws -> Crew {
        let crew = try Crew(shards: shards)
        for name in names { try crew.join(name) }
        crew.pass(12_000)
        return crew
    }

    private func isEven(_ crew: Crew, among count: Int) -> Bool {
        let sizes = crew.owners.values.map(\.count)
        return sizes.reduce(0, +) == crew.shards && sizes.count == min(count, crew.shards)
            && (sizes.max() ?? 0) - (sizes.min() ?? 0) <= (crew.shards % count == 0 ? 0 : 1)
    }

    // MARK: Who has which shard

    @Test("Shards are even within ten seconds of a start and of each join", arguments: [1, 2, 3, 4, 6])
    func starts(count: Int) throws {
        let crew = try Crew(shards: 4)
        for number in 0..<count {
            try crew.join("w\(number)")
            let took = crew.time(until: 10_000) { isEven(crew, among: number + 1) }
            #expect(took != nil, "with \(number + 1) workers: \(crew.owners)")
        }
        crew.pass(10_000)
        for shard in 0..<4 { #expect(crew.consumers(of: shard).count == 1, "nobody waits for long") }
    }

    @Test("All starting at once find the same division")
    func together() throws {
        let crew = try Crew(shards: 8)
        for name in ["c", "a", "d", "b"] { try crew.join(name) }
        #expect(crew.time(until: 10_000) { isEven(crew, among: 4) } != nil)
        crew.pass(10_000)
        #expect(crew.owners == ["a": [0, 4], "b": [1, 5], "c": [2, 6], "d": [3, 7]])
    }

    @Test("After a kill the others have its shards within ten seconds, at any moment between two renewals")
    func kill() throws {
        for moment in stride(from: Int64(0), to: 2_000, by: 250) {
            let crew = try crew(["a", "b"])
            crew.pass(10_000 + moment)
            crew.kill(crew.members[0])
            let took = crew.time(until: 10_000) { crew.owners["b"] == [0, 1, 2, 3] }
            #expect(took != nil, "at \(moment): \(crew.owners)")
        }
    }

    @Test("A frozen worker's shards are others' within thirty seconds; awake, it goes by what is then")
    func freeze() throws {
        let crew = try crew(["a", "b"])
        let frozen = crew.members[0]
        crew.command("o", "open", "r", shard: 0)
        crew.settle()
        crew.freeze(frozen)
        crew.command("e", "join", "r", shard: 0, user: "u", id: false)
        #expect(crew.time(until: 30_000) { crew.owners["b"] == [0, 1, 2, 3] } != nil)
        crew.pass(30_000)
        crew.thaw(frozen)
        #expect(crew.time(until: 10_000) { isEven(crew, among: 2) } != nil)
        crew.pass(10_000)
        #expect(crew.acknowledged.sorted() == ["e", "o"])
        #expect(crew.room("r")?.session?.connected == 1)
    }

    @Test("What a frozen worker had not decided is nobody else's twice, though it has no id")
    func frozenUndecided() throws {
        let crew = try crew(["a", "b"])
        crew.command("o", "open", "r", shard: 0)
        crew.settle()
        let frozen = crew.members[0]
        // Delivered, and not decided before it is frozen.
        crew.command("j", "join", "r", shard: 0, user: "u", id: false)
        crew.freeze(frozen)
        crew.pass(40_000)
        #expect(crew.acknowledged == ["o", "j"])
        crew.thaw(frozen)
        crew.pass(5_000)
        #expect(crew.replies(of: frozen).count == 1, "it answered the first one only")
    }

    @Test("Shut out by the broker for some seconds, a worker leaves its shards to others at once")
    func disconnected() throws {
        let crew = try crew(["a", "b"])
        let member = crew.members[0]
        crew.disconnect(member)
        crew.pass(2_000)
        #expect(crew.disk.leases["a"]?.lease != nil, "a reconnect takes less")
        let took = crew.time(until: 6_000) { crew.owners["b"] == [0, 1, 2, 3] }
        #expect(took != nil, "without waiting for the end of the lease")
        crew.connect(member)
        #expect(crew.time(until: 10_000) { isEven(crew, among: 2) } != nil)
    }

    @Test("A worker that stops hands its shards over and gives its lease up")
    func stops() throws {
        let crew = try crew(["a", "b"])
        crew.members[0].handle(.stop)
        #expect(crew.time(until: 4_000) { crew.owners["b"] == [0, 1, 2, 3] } != nil)
        #expect(crew.disk.leases["a"] == nil)
        crew.command("o", "open", "r", shard: 0, redelivered: true)
        crew.settle()
        #expect(crew.members[1].store.marks == 0, "it was no crash")
        #expect(crew.acknowledged == ["o"])
    }

    @Test("A worker with another number of shards gives up; those that serve go on")
    func otherShards() throws {
        let crew = try crew(["a", "b"])
        let other = try crew.join("c", shards: 2)
        crew.pass(5_000)
        guard case .otherShards(2, 4, let host) = other.worker.fatal else {
            return #expect(Bool(false), "\(String(describing: other.worker.fatal))")
        }
        #expect(host == "host-a")
        #expect(other.open.keys.allSatisfy { ConsumerChannel.shard(of: $0) == nil })
        #expect(crew.members[0].worker.fatal == nil && crew.members[1].worker.fatal == nil)
        #expect(crew.owners == ["a": [0, 2], "b": [1, 3]])
        #expect(throws: StoreError.self) {
            let run = RunRow(id: "d", pid: 1, host: "d", startedAt: Instant(milliseconds: Bench.noon))
            _ = try crew.members[0].store.beginRun(run)
            try Worker.admit(run, shards: 3, to: crew.members[0].store)
        }
        #expect(crew.disk.leases["d"] == nil)
    }

    @Test("Each worker tells of all of them: their shards, and how far their clocks are behind")
    func state() throws {
        let crew = try Crew(shards: 3)
        try crew.join("a", clockBehind: 1_200)
        try crew.join("b")
        crew.pass(15_000)
        crew.query(#"{"query":"state"}"#, to: crew.members[1])
        crew.settle()
        let body = try #require(crew.replies(of: crew.members[1]).last)
        let state = try #require(WorkerState.decode(body))
        #expect(
            state.members == [
                WorkerState.Member(run: "a", host: "host-a", pid: 1, shards: [0, 2], clockOffset: 1_200),
                WorkerState.Member(run: "b", host: "host-b", pid: 1, shards: [1], clockOffset: 0),
            ])
        #expect(state["shards"] == "3")
        #expect(state["consuming"] == "yes")
    }

    @Test("A worker is ready without a shard, where others have them all, but not without a lease")
    func readiness() throws {
        let crew = try crew(["a", "b"], shards: 1)
        #expect(crew.members.map(\.worker.notReady) == [[], []])
        crew.disconnect(crew.members[0])
        crew.pass(4_000)
        #expect(crew.members[0].worker.notReady.contains { $0.hasPrefix("lease: none") })
        #expect(crew.members[1].worker.notReady == [])
    }

    // MARK: Handing over

    @Test("What is in hand is finished first; what comes meanwhile goes to the next worker, in order")
    func handOver() throws {
        let crew = try crew(["b"])
        crew.verdict = { _, channel in channel == PublisherChannel.events ? .silence : .confirm }
        crew.command("o", "open", "r", shard: 0)
        crew.settle()
        #expect(crew.acknowledged.isEmpty)
        try crew.join("a")
        crew.pass(2_500)
        for name in ["1", "2", "3"] { crew.command(name, "join", "r", shard: 0, user: name, id: false) }
        #expect(crew.consumers(of: 0) == ["b", "a"], "the new one waits for its turn")
        crew.verdict = { _, _ in .confirm }
        crew.pass(1_000)
        #expect(crew.owners == ["a": [0, 2], "b": [1, 3]])
        #expect(crew.acknowledged == ["o", "1", "2", "3"])
        #expect(crew.events == ["r:1", "r:2", "r:3", "r:4", "r:5"])
        let joins = crew.published.filter { $0.channel == PublisherChannel.events }.dropFirst()
        #expect(joins.allSatisfy { $0.worker == "a" })
    }

    @Test("What cannot be finished is not waited for longer than a stop takes; the next worker repeats it")
    func handOverBounded() throws {
        let crew = try crew(["b"])
        crew.verdict = { member, _ in member.name == "b" ? .silence : .confirm }
        crew.command("o", "open", "r", shard: 0)
        crew.settle()
        try crew.join("a")
        #expect(crew.time(until: 10_000) { crew.owners["a"] == [0, 2] } != nil)
        crew.pass(1_000)
        #expect(crew.acknowledged == ["o"])
        #expect(crew.events == ["r:1", "r:1"], "the next one cannot know whether it went out")
        #expect(crew.room("r")?.sequence == 1)
    }

    // MARK: Events of others

    @Test("A killed worker's events go out before what follows them, without another command too")
    func inherited() throws {
        let crew = try crew(["a", "b"])
        crew.verdict = { member, channel in
            member.name == "a" && channel == PublisherChannel.events ? .silence : .confirm
        }
        crew.command("1", "open", "r", shard: 0)
        crew.command("2", "open", "s", shard: 0)
        crew.settle()
        crew.kill(crew.members[0])
        let before = crew.events.count
        crew.queues = [:]
        crew.pass(20_000)
        #expect(Array(crew.events.dropFirst(before)) == ["r:1", "s:1"])
        #expect(crew.disk.outbox.isEmpty)
    }

    /// Does what it is asked once, and says that it has failed.
    private final class Doubt: MemoryStore.Gate {
        var call: MemoryStore.Call?
        func before(_ call: MemoryStore.Call, on rooms: [RoomID]) throws(StoreError) {}
        func after(_ call: MemoryStore.Call) throws(StoreError) {
            guard call == self.call else { return }
            self.call = nil
            throw .io(code: 10, "whether it was done is unknown")
        }
    }

    @Test("What was taken over from a dead worker is published first, though its taking seemed to fail")
    func inheritedInDoubt() throws {
        let crew = try Crew(shards: 4)
        try crew.join("a")
        let doubt = Doubt()
        try crew.join("b", gate: doubt)
        crew.pass(12_000)
        crew.verdict = { member, channel in
            member.name == "a" && channel == PublisherChannel.events ? .silence : .confirm
        }
        crew.command("1", "open", "r", shard: 0)
        crew.settle()
        crew.kill(crew.members[0])
        let before = crew.events.count
        crew.queues = [:]
        doubt.call = .inherit
        // Once the lease is over.
        crew.members[0].worker.inheritAt = crew.uptime + 8_000
        crew.pass(12_000)
        #expect(doubt.call == nil)
        crew.command("2", "join", "r", shard: 0, user: "u")
        crew.pass(12_000)
        #expect(Array(crew.events.dropFirst(before)).first == "r:1")
        #expect(crew.disk.outbox.isEmpty)
        try expectOrder(crew)
    }

    @Test("Whoever takes a tick publishes what the room's worker has not, and each keeps the order")
    func unsent() throws {
        let crew = try crew(["a", "b"])
        crew.command("o", "open", "r", shard: 0)
        crew.command("j", "join", "r", shard: 0, user: "u")
        crew.settle()
        crew.verdict = { member, channel in
            member.name == "a" && channel == PublisherChannel.events ? .silence : .confirm
        }
        let before = crew.events.count
        crew.command("k", "join", "r", shard: 0, user: "v")
        crew.settle()
        crew.pass(51 * 60_000, step: 10_000)
        crew.tick(["r"], to: crew.members[1])
        crew.settle()
        // Confirmed, and not marked yet.
        crew.tick(["r"], to: crew.members[1])
        crew.settle()
        let ofB = crew.published.filter { $0.worker == "b" && $0.channel == PublisherChannel.events }
            .map { $0.publication.properties.messageID?.description ?? "?" }
        #expect(ofB == ["r:4", "r:5"], "\(crew.events.dropFirst(before))")
        crew.command("l", "leave", "r", shard: 0, user: "v")
        crew.verdict = { _, _ in .confirm }
        crew.pass(30_000)
        #expect(crew.disk.outbox.isEmpty)
        try expectOrder(crew)
    }

    @Test(
        "What a dead worker left is not published before what a living one holds back in the same room",
        arguments: ["a living one", "a starting one"])
    func orphansBehind(who: String) throws {
        let crew = try crew(who == "a living one" ? ["a", "b", "c"] : ["a", "b"])
        crew.command("o", "open", "r", shard: 0)
        crew.command("j", "join", "r", shard: 0, user: "u")
        crew.settle()
        crew.verdict = { member, channel in
            ["a", "b"].contains(member.name) && channel == PublisherChannel.events ? .silence : .confirm
        }
        crew.pass(51 * 60_000, step: 10_000)
        let before = crew.published.count
        crew.command("k", "join", "r", shard: 0, user: "v")
        crew.settle()
        crew.tick(["r"], to: crew.members[1])
        crew.pass(5 * 60_000, step: 10_000)
        crew.tick(["r"], to: crew.members[1])
        crew.settle()
        crew.kill(crew.members[1])
        // Nobody else is to be quicker.
        crew.members[0].worker.inheritAt = .max
        if who == "a starting one" {
            crew.pass(7_000)
            try crew.join("c")
        }
        crew.pass(15_000)
        let ofC = crew.published.dropFirst(before)
            .filter { $0.worker == "c" && $0.channel == PublisherChannel.events }
            .compactMap { $0.publication.properties.messageID?.description }
        #expect(ofC == ["r:4", "r:5", "r:6"])
    }

    /// First copies of each room in order, without a gap.
    private func expectOrder(_ crew: Crew) throws {
        var last: [Substring: Int] = [:]
        for event in crew.events {
            let parts = event.split(separator: ":")
            let sequence = try #require(Int(parts[1]))
            let known = last[parts[0], default: 0]
            #expect(sequence <= known + 1, "\(event) after \(known)")
            last[parts[0]] = max(known, sequence)
        }
    }

    // MARK: Conflicts

    /// Changes rooms behind a worker's back, before it commits.
    private final class Meddler: MemoryStore.Gate {
        var meddle: () -> Void = {}
        func before(_ call: MemoryStore.Call, on rooms: [RoomID]) throws(StoreError) {
            if call == .commit { meddle() }
        }
        func after(_ call: MemoryStore.Call) throws(StoreError) {}
    }

    @Test("Rooms that others change all the time hold up no others, lose nothing and keep their order")
    func conflicts() throws {
        let crew = try Crew(shards: 1)
        let meddler = Meddler()
        let member = try crew.join("a", gate: meddler)
        crew.pass(3_000)
        for room in 0..<20 { crew.command("o\(room)", "open", "r\(room)", shard: 0) }
        crew.settle()
        let store = SharedMemoryStore(disk: crew.disk, clock: { Bench.noon })
        var left = 40
        meddler.meddle = {
            guard left > 0, let stored = crew.disk.rooms["r7"] else { return }
            left -= 1
            _ = try? store.commit(
                BatchCommit(
                    rooms: [
                        RoomWrite(room: stored.room, expectedVersion: stored.version, isChanged: true)
                    ]))
        }
        for user in 0..<5 {
            for room in 0..<20 {
                crew.command("j\(room)-\(user)", "join", "r\(room)", shard: 0, user: "u\(user)")
            }
        }
        crew.settle()
        crew.pass(15_000)
        #expect(left == 0)
        #expect(crew.acknowledged.count == 120)
        #expect(Set(crew.acknowledged).count == 120)
        for room in 0..<20 {
            #expect(crew.room(RoomID("r\(room)"))?.session?.connected == 5)
            let joins = crew.acknowledged.filter { $0.hasPrefix("j\(room)-") }
            #expect(joins == joins.sorted())
        }
        try expectOrder(crew)
        #expect(member.worker.counters.storeFailures == 0)
        #expect(member.worker.counters.conflicts > 3)
        #expect(crew.logFile.lines(containing: "the store fails").isEmpty)
        let said = crew.logFile.lines(containing: "decided again").filter { !$0.contains(" debug ") }
        #expect(said.isEmpty)
    }

    @Test("A tick that meets conflicts is answered for all of its rooms, and acknowledged once")
    func conflictingTick() throws {
        let crew = try Crew(shards: 1)
        let meddler = Meddler()
        let member = try crew.join("a", gate: meddler)
        crew.pass(3_000)
        let rooms = (0..<8).map { RoomID("r\($0)") }
        for room in rooms {
            crew.command("o\(room.text)", "open", room.text, shard: 0)
            crew.command("j\(room.text)", "join", room.text, shard: 0, user: "u")
        }
        crew.settle()
        let store = SharedMemoryStore(disk: crew.disk, clock: { Bench.noon })
        var left = 12
        meddler.meddle = {
            guard left > 0, let stored = crew.disk.rooms["r3"] else { return }
            left -= 1
            _ = try? store.commit(
                BatchCommit(
                    rooms: [
                        RoomWrite(room: stored.room, expectedVersion: stored.version, isChanged: true)
                    ]))
        }
        crew.pass(51 * 60_000, step: 5_000)
        let before = crew.replies(of: member).count
        crew.tick(rooms, to: member)
        crew.settle()
        let answered = crew.replies(of: member).dropFirst(before).compactMap { TickAnswer.decode($0) }
        #expect(answered.flatMap(\.rooms).map(\.room).sorted() == rooms)
        #expect(crew.acknowledged.filter { $0 == "tick" }.count == 1)
        try expectOrder(crew)
    }

    // MARK: The store's clock

    @Test(
        "Hosts with wrong clocks decide alike: the store's counts",
        arguments: [-90_000, 0, 90_000] as [Int64])
    func clocks(behind: Int64) throws {
        let crew = try Crew(shards: 1)
        let member = try crew.join("a", clockBehind: behind)
        crew.pass(3_000)
        crew.command("o", "open", "r", shard: 0)
        crew.command("j", "join", "r", shard: 0, user: "u")
        crew.settle()
        let store = Instant(milliseconds: crew.storeClock.nowMilliseconds())
        guard case .running(let run) = crew.room("r")?.session?.phase else {
            return #expect(Bool(false), "not running")
        }
        #expect(run.startedAt == store)
        #expect(member.worker.now == store)
        crew.query(#"{"query":"rooms"}"#, to: member)
        crew.settle()
        let page = try QueryReplyDecoder.rooms(try #require(crew.replies(of: member).last)).get()
        #expect(page.serverTime == store)
        crew.pass(3_000)
        #expect(crew.disk.leases["a"]?.lease?.clockOffset == behind)
    }

    @Test("What is known of the store's clock moves only as far as an answer asks")
    func storeClock() {
        var clock = StoreClock()
        clock.learn(Instant(milliseconds: 1_000), askedAt: 900, answeredAt: 1_100)
        #expect(clock.offset == 0)
        clock.learn(Instant(milliseconds: 2_000), askedAt: 900, answeredAt: 1_100)
        #expect(clock.offset == 900)
        clock.learn(Instant(milliseconds: 2_000), askedAt: 0, answeredAt: 2_000)
        #expect(clock.offset == 900, "a slow answer says little")
        clock.learn(Instant(milliseconds: 2_000), askedAt: 1_100, answeredAt: 900)
        #expect(clock.offset == 900)
    }

    // MARK: Crashes

    @Test("What a crashed worker left is marked by whoever gets its shard; other shards go on in batches")
    func crashLeftovers() throws {
        let crew = try crew(["a", "b"], shards: 2)
        let survivor = crew.members[1]
        for name in ["1", "2", "3"] { crew.command(name, "open", "r\(name)", shard: 0) }
        // Delivered, undecided.
        crew.kill(crew.members[0])
        #expect(crew.time(until: 10_000) { crew.acknowledged.count == 3 } != nil)
        #expect(survivor.store.marks == 3)
        crew.command("4", "open", "r4", shard: 0)
        crew.command("5", "open", "r5", shard: 0, redelivered: true)
        crew.command("6", "open", "r6", shard: 1, redelivered: true)
        crew.settle()
        #expect(crew.acknowledged == ["1", "2", "3", "4", "5", "6"])
        #expect(survivor.store.marks == 3, "seen to the end, and never another's")
    }

    @Test("A broker that was away for long is nobody's crash, and what it delivers again goes in batches")
    func brokerAway() throws {
        let crew = try crew(["a", "b"], shards: 2)
        crew.verdict = { _, _ in .silence }
        for number in 0..<4 { crew.command("\(number)", "open", "r\(number)", shard: number % 2) }
        crew.settle()
        let (first, second) = (crew.members[0], crew.members[1])
        for member in [first, second] { crew.disconnect(member) }
        crew.pass(20_000)
        crew.verdict = { _, _ in .confirm }
        // One is back before the other, and takes all shards for a while.
        crew.connect(first)
        #expect(crew.time(until: 10_000) { crew.acknowledged.count == 4 } != nil)
        crew.connect(second)
        #expect(crew.time(until: 10_000) { isEven(crew, among: 2) } != nil)
        #expect(first.store.marks == 0 && second.store.marks == 0)
    }

    @Test("A worker that comes back was no crash: what is delivered again later goes in batches")
    func comesBack() throws {
        let crew = try crew(["a", "b"], shards: 2)
        let (frozen, other) = (crew.members[0], crew.members[1])
        crew.freeze(frozen)
        #expect(crew.time(until: 30_000) { crew.owners["b"] == [0, 1] } != nil)
        crew.thaw(frozen)
        #expect(crew.time(until: 10_000) { isEven(crew, among: 2) } != nil)
        crew.pass(5_000)
        for member in [frozen, other] {
            crew.disconnect(member)
            crew.connect(member)
        }
        for number in 0..<4 {
            crew.command("\(number)", "open", "r\(number)", shard: number % 2, redelivered: true)
        }
        crew.pass(5_000)
        #expect(crew.acknowledged.count == 4)
        #expect(frozen.store.marks == 0 && other.store.marks == 0)
        // The next time it has crashed.
        for number in 4..<6 { crew.command("\(number)", "open", "r\(number)", shard: 0) }
        crew.kill(frozen)
        #expect(crew.time(until: 30_000) { crew.acknowledged.count == 6 } != nil)
        #expect(other.store.marks == 2)
    }

    @Test("A message that kills one worker after the other is a dead letter at its third mark")
    func poison() throws {
        let crew = try crew(["a", "b", "c", "d", "e"], shards: 1)
        let deadly = CrashGuard.key(
            of: Delivery(
                consumerTag: "", tag: DeliveryTag(generation: 1, number: 1), redelivered: true, exchange: "",
                routingKey: "r", properties: Properties(correlationID: "x", replyTo: "me"),
                body: .bytes(Array(#"{"command":"open","room":"r","id":"x"}"#.utf8))))
        for name in ["a", "b", "c"] {
            let victim = try #require(crew.members.first { $0.name == name })
            try victim.store.markAttempts([deadly], run: name)
            crew.kill(victim)
        }
        crew.command("x", "open", "r", shard: 0, redelivered: true)
        crew.pass(12_000)
        let letters = crew.published.filter { $0.channel == PublisherChannel.letters }
        let reasons = letters.map { $0.publication.properties.headers?["x-overtime-reason"]?.text }
        #expect(reasons == ["crashed_worker"])
        #expect(crew.acknowledged == ["x"])
    }
}
