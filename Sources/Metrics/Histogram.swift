/// How often values fell into which range. Plain numbers for one thread: observing costs a walk over some bounds.
package struct Histogram: Sendable, Equatable {
    package let bounds: [Double]
    /// By range, the last for what is above every bound; not cumulative.
    package private(set) var counts: [Int64]
    package private(set) var sum: Double = 0

    /// A histogram of a metric; of one that is none, all values fall into one range.
    package init(_ metric: Metric) {
        if case .histogram(let bounds) = metric.definition.kind { self.bounds = bounds } else { bounds = [] }
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    package var count: Int64 { counts.reduce(0, +) }

    package mutating func observe(_ value: Double) {
        var range = 0
        while range < bounds.count, value > bounds[range] { range += 1 }
        counts[range] += 1
        sum += value
    }

    package mutating func observe(milliseconds: Int64) { observe(Double(milliseconds) / 1_000) }
}
