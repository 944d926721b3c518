/// The deliveries of one channel generation that are not settled yet.
///
/// The broker closes a channel (406) over an acknowledgement of a number that it does not know, so only numbers
/// found here are sent. Acknowledging up to a number is one frame instead of many, but settles everything below: it
/// is used only up to the first delivery that must stay open.
struct AcknowledgementWindow: Sendable {
    private struct Entry: Sendable {
        var tag: UInt64
        var isOpen: Bool
        var largeBytes: Int
    }

    /// Ascending, since the broker numbers in order.
    private var entries: [Entry] = []
    private var head = 0
    private(set) var openCount = 0
    /// Bytes of the bodies, not small, of those that are open.
    private(set) var largeBytes = 0

    mutating func delivered(_ tag: UInt64, largeBytes: Int = 0) throws(AMQPError) {
        // Acknowledging 0 would mean "all so far".
        guard tag > 0 else { throw .protocolViolation("a delivery came with the number 0") }
        if let last = entries.last, last.tag >= tag {
            throw .protocolViolation("delivery number \(tag) came after \(last.tag)")
        }
        entries.append(Entry(tag: tag, isOpen: true, largeBytes: largeBytes))
        openCount += 1
        self.largeBytes += largeBytes
    }

    /// The frames that acknowledge these deliveries; unknown and settled numbers are passed over.
    mutating func acknowledge(_ tags: some Sequence<UInt64>) -> [ChannelMethod] {
        var settled: [UInt64] = []
        for tag in tags where close(tag) { settled.append(tag) }
        guard !settled.isEmpty else { return [] }
        while head < entries.count, !entries[head].isOpen { head += 1 }
        let firstOpen = head < entries.count ? entries[head].tag : nil
        compact()

        var methods: [ChannelMethod] = []
        var highest: UInt64 = 0
        var prefixCount = 0
        for tag in settled where firstOpen.map({ tag < $0 }) ?? true {
            highest = max(highest, tag)
            prefixCount += 1
        }
        if prefixCount > 0 { methods.append(.acknowledge(tag: highest, multiple: prefixCount > 1)) }
        guard let firstOpen else { return methods }
        for tag in settled where tag > firstOpen { methods.append(.acknowledge(tag: tag, multiple: false)) }
        return methods
    }

    /// `nil` if the delivery is unknown or settled.
    mutating func reject(_ tag: UInt64, requeue: Bool) -> ChannelMethod? {
        guard close(tag) else { return nil }
        while head < entries.count, !entries[head].isOpen { head += 1 }
        compact()
        return .reject(tag: tag, requeue: requeue)
    }

    private mutating func close(_ tag: UInt64) -> Bool {
        var low = head
        var high = entries.count
        while low < high {
            let middle = low + (high - low) / 2
            if entries[middle].tag < tag { low = middle + 1 } else { high = middle }
        }
        guard low < entries.count, entries[low].tag == tag, entries[low].isOpen else { return false }
        entries[low].isOpen = false
        openCount -= 1
        largeBytes -= entries[low].largeBytes
        return true
    }

    /// Keeps the last entry, against which the next number is checked.
    private mutating func compact() {
        guard head > 1024, head > entries.count / 2 else { return }
        let dropped = min(head, entries.count - 1)
        entries.removeFirst(dropped)
        head -= dropped
    }
}
