/// The values of a process at one moment, immutable once it is handed over.
package struct MetricReport: Sendable {
    enum Value: Sendable {
        case integer(Int64)
        case real(Double)
        case histogram(Histogram)
    }

    struct Sample: Sendable {
        let labels: [String]
        let value: Value
    }

    private(set) var samples: [Metric: [Sample]] = [:]

    package init() {}

    /// Sets one value; the labels' values in the order of the definition's names.
    package mutating func set(_ metric: Metric, _ value: Int64, _ labels: String...) {
        samples[metric, default: []].append(Sample(labels: labels, value: .integer(value)))
    }

    package mutating func set(_ metric: Metric, _ value: Bool, _ labels: String...) {
        samples[metric, default: []].append(Sample(labels: labels, value: .integer(value ? 1 : 0)))
    }

    package mutating func set(_ metric: Metric, _ value: Double, _ labels: String...) {
        samples[metric, default: []].append(Sample(labels: labels, value: .real(value)))
    }

    package mutating func set(_ metric: Metric, _ histogram: Histogram) {
        samples[metric, default: []].append(Sample(labels: [], value: .histogram(histogram)))
    }

    /// The metrics that have a value.
    package var metrics: Set<Metric> { Set(samples.keys) }
}
