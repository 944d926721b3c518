/// A heap of instants with what is due at them, earliest first; equal instants in no order.
///
/// Entries are never removed from the middle: who changes its mind adds another entry and recognises the old one, when
/// it comes up, by its ticket.
struct DeadlineHeap<Element> {
    private var entries: [(at: Int64, element: Element)] = []

    var count: Int { entries.count }
    /// The earliest instant; nil where nothing is due.
    var earliest: Int64? { entries.first?.at }

    mutating func add(_ element: Element, at instant: Int64) {
        entries.append((instant, element))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].at < entries[parent].at else { return }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// The earliest entry, if it is due at `instant`.
    mutating func takeDue(at instant: Int64) -> Element? {
        guard let first = entries.first, first.at <= instant else { return nil }
        let last = entries.removeLast()
        if !entries.isEmpty {
            entries[0] = last
            sink()
        }
        return first.element
    }

    /// Drops what does not count any more.
    mutating func keep(where counts: (Element) -> Bool) {
        entries = entries.filter { counts($0.element) }
        for parent in stride(from: entries.count / 2 - 1, through: 0, by: -1) { sink(from: parent) }
    }

    private mutating func sink(from start: Int = 0) {
        var parent = start
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[child].at < entries[smallest].at { smallest = child }
            }
            guard smallest != parent else { return }
            entries.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
