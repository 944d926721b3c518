import AMQP
import RoomCore
import Store

/// Finds the message that kills the worker.
///
/// After a crash, redelivered commands are suspects: a batch of them is decided behind a durable mark of each that names the
/// run, and each command's own commit removes its marks. Marks of crashed runs therefore stand for messages that were
/// being decided when a worker died. Who has one is decided alone from then on, and given up at the third: so one of
/// them says little, and more than one is the message's own doing.
/// After a clean stop, a closed channel or a lost connection nothing is marked.
struct CrashGuard {
    let attempts: Int
    private var crashedRuns: Set<String>
    /// Queues, by consumer tag, that have delivered a command which was no redelivery: what crashes left behind in
    /// them has then been seen.
    private var seen: Set<ShortString> = []
    /// Which crashes were known when a queue was last taken from another worker.
    private var knownAtOpening: [ShortString: Set<String>] = [:]

    init(crashedRuns: [String], attempts: Int) {
        self.crashedRuns = Set(crashedRuns)
        self.attempts = attempts
    }

    /// Takes note of the workers that have crashed by now: what they left behind may lie in queues that are opened from now
    /// on, and not in those that are `consumed` here. One that has come back has left nothing behind.
    mutating func learn(crashed: [String], consumed: [ShortString]) {
        let crashed = Set(crashed)
        guard crashed != crashedRuns else { return }
        if crashedRuns.isEmpty { seen.formUnion(consumed) }
        crashedRuns = crashed
        for queue in knownAtOpening.keys { knownAtOpening[queue]?.formIntersection(crashed) }
    }

    /// A queue is about to be opened that another worker may have had.
    mutating func opens(_ queue: ShortString) {
        if !crashedRuns.isSubset(of: knownAtOpening[queue] ?? []) { seen.remove(queue) }
        knownAtOpening[queue] = crashedRuns
    }

    /// Whether a delivery may be what killed a worker. To be asked in the order of the deliveries.
    mutating func isSuspect(_ delivery: Delivery) -> Bool {
        guard !crashedRuns.isEmpty else { return false }
        if !delivery.redelivered { seen.insert(delivery.consumerTag) }
        return !seen.contains(delivery.consumerTag)
    }

    /// A name for a message that is the same at each delivery: two FNV-1a hashes of what the publisher sent.
    static func key(of delivery: Delivery) -> AttemptKey {
        var first = FNV(offset: 0xcbf2_9ce4_8422_2325)
        var second = FNV(offset: 0x6c62_272e_07bb_0142)
        var size: UInt64 = 0
        if case .bytes(let body) = delivery.body {
            size = UInt64(body.count)
            body.withUnsafeBufferPointer { bytes in
                first.add(bytes)
                second.add(bytes)
            }
        }
        for part in [delivery.properties.messageID, delivery.properties.correlationID, delivery.routingKey] {
            (part?.bytes ?? []).withUnsafeBufferPointer { bytes in
                first.add(bytes)
                second.add(bytes)
            }
            first.add(0)
        }
        return AttemptKey(
            String(first.value, radix: 16) + "-" + String(second.value, radix: 16) + "-" + String(size))
    }

    private struct FNV {
        private(set) var value: UInt64

        init(offset: UInt64) { value = offset }

        mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
        mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) { for byte in bytes { add(byte) } }
    }
}
