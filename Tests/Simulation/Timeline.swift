/// The universe's time in milliseconds, and what happens at which instant of it: at equal instants in the order in
/// which it was said.
final class Timeline {
    private struct Entry {
        let at: Int64
        let order: UInt64
        let action: () -> Void

        func precedes(_ other: Entry) -> Bool { at != other.at ? at < other.at : order < other.order }
    }

    private(set) var now: Int64 = 0
    private(set) var steps = 0
    /// More steps than any run needs: something spins.
    static let mostSteps = 3_000_000
    private var heap: [Entry] = []
    private var nextOrder: UInt64 = 0

    func after(_ delay: Int64, _ action: @escaping () -> Void) { at(now + max(delay, 0), action) }

    func at(_ instant: Int64, _ action: @escaping () -> Void) {
        heap.append(Entry(at: max(instant, now), order: nextOrder, action: action))
        nextOrder += 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].precedes(heap[parent]) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Lets the next thing happen; false where nothing is left, or only after `end`.
    func step(until end: Int64) -> Bool {
        guard let first = heap.first, first.at <= end, !isSpinning else {
            now = max(now, end)
            return false
        }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        now = first.at
        steps += 1
        first.action()
        return true
    }

    var isSpinning: Bool { steps >= Self.mostSteps }

    func run(until end: Int64) { while step(until: end) {} }

    /// Forgets what was still to come, and with it whatever it holds.
    func clear() { heap = [] }

    private func sink() {
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].precedes(heap[smallest]) { smallest = child }
            }
            guard smallest != parent else { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
