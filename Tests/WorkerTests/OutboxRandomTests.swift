import RoomCore
import Store
import Testing

@testable import Worker

@Suite("The outbox's publisher under any sequence of fortunes")
struct OutboxRandomTests {
    /// Small numbers that repeat: splitmix64.
    struct Dice {
        var state: UInt64
        mutating func roll(_ sides: Int) -> Int {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return Int((z ^ (z >> 31)) % UInt64(sides))
        }
    }

    /// A third of the seeds has events that close the channel, another one has closes that are nobody's fault.
    @Test("Order, truth and an end of everything", arguments: 0..<600)
    func invariants(seed: Int) {
        let hasCulprits = seed % 3 == 1
        let losses: [ReplyPublisher.Loss] =
            seed % 3 == 2 ? [.withConnection, .exchange, .message] : [.withConnection, .exchange]
        var dice = Dice(state: UInt64(seed) &* 7_919)
        let bench = OutboxBench { $0.inFlight = 1 + dice.roll(8) }
        var open: [UInt64: String] = [:]
        var everSent: [String: [Int64]] = [:]
        var confirmed: Set<Int64> = []
        var positions: [UInt64: Int64] = [:]
        var culprits: Set<String> = []
        var added = 0

        func closesChannel(_ id: UInt64) -> Bool { hasCulprits && (positions[id] ?? 0) % 5 == 3 }

        /// What may have an end: nothing from a culprit on.
        func answerable() -> [UInt64] { Array(open.keys.sorted().prefix { !closesChannel($0) }) }

        func lose(_ loss: ReplyPublisher.Loss) {
            open = [:]
            bench.lose(loss)
        }

        func send() {
            for sending in bench.send() {
                let room = sending.event.draft.room.text
                let position = sending.event.position
                if !(everSent[room] ?? []).contains(position) {
                    if let last = everSent[room]?.last {
                        #expect(position > last, "seed \(seed): first copies out of order")
                    }
                    everSent[room, default: []].append(position)
                }
                open[sending.id] = sending.event.draft.messageID
                positions[sending.id] = position
                if closesChannel(sending.id) { culprits.insert(sending.event.draft.messageID) }
            }
        }

        func check() {
            bench.collect()
            let finished = Set(bench.finished)
            #expect(finished.count == bench.finished.count, "seed \(seed): finished twice")
            #expect(bench.outbox.held == added - finished.count, "seed \(seed): held")
            // Confirms of copies older than the last two do not count, so some may be passed over all the same.
            #expect(
                finished.subtracting(confirmed).isSubset(of: bench.passedOverPositions),
                "seed \(seed): finished without a confirm or being passed over")
            #expect(bench.outbox.inFlightCount <= 8, "seed \(seed): more on their way than the bound")
            #expect(Set(bench.settled).count == bench.settled.count, "seed \(seed): settled twice")
            if hasCulprits {
                let isTrue = bench.convicted.allSatisfy { culprits.contains($0) }
                #expect(isTrue, "seed \(seed): convicted \(bench.convicted)")
            }
        }

        for _ in 0..<200 {
            switch dice.roll(12) {
            case 0, 1, 2:
                bench.add(["a", "b", "c"][dice.roll(3)])
                added += 1
            case 3, 4, 5: send()
            case 6, 7:
                let ids = answerable()
                guard let id = ids.dropFirst(dice.roll(max(1, ids.count))).first else { break }
                open[id] = nil
                if let position = positions[id] { confirmed.insert(position) }
                bench.outbox.confirmed([id])
            case 8, 9:
                let ids = answerable()
                guard let id = ids.dropFirst(dice.roll(max(1, ids.count))).first else { break }
                open[id] = nil
                bench.outbox.refused([id], at: bench.now)
            case 10:
                if open.keys.contains(where: closesChannel) {
                    lose(.message)
                } else if dice.roll(4) == 0 {
                    lose(losses[dice.roll(losses.count)])
                }
            default: bench.pass([100, 1_000, 5_000, 12_000, 61_000][dice.roll(5)])
            }
            check()
        }
        // A calm phase: everything is confirmed, in order, but for what closes the channel.
        for _ in 0..<800 where bench.outbox.held > 0 {
            bench.pass(1_000)
            send()
            let ids = answerable()
            for id in ids {
                if let position = positions[id] { confirmed.insert(position) }
            }
            bench.outbox.confirmed(ids)
            if open.keys.contains(where: closesChannel) { lose(.message) } else { open = [:] }
            check()
        }
        #expect(bench.outbox.held == 0, "seed \(seed): something is stuck")
        #expect(Set(bench.settled).count == added, "seed \(seed): a delivery waits for ever")
        #expect(bench.outbox.inFlightCount == 0, "seed \(seed): a number was kept")
    }
}
