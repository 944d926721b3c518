/// What is known of a metric before any value: the row of the table that docs/metrics.md shows.
package struct MetricDefinition: Sendable, Equatable {
    /// Prometheus' types.
    package enum Kind: Sendable, Equatable {
        /// Only ever grows while the process lives.
        case counter
        case gauge
        /// How often a value fell into which range; the ranges' upper bounds, ascending, without the last, infinity.
        case histogram(bounds: [Double])

        package var name: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// What a value is counted in; base units only.
    package enum Unit: String, Sendable {
        case seconds
        case bytes
        /// 0 or 1.
        case flag
        case count
    }

    /// Which processes emit it.
    package enum Source: String, Sendable, CaseIterable {
        case worker
        case scheduler
    }

    package let kind: Kind
    package let unit: Unit
    /// One sentence without its full stop.
    package let help: String
    /// The names of its labels, in the order in which their values are given.
    package let labels: [String]
    package let sources: [Source]

    init(_ kind: Kind, _ unit: Unit, _ sources: [Source], labels: [String] = [], _ help: String) {
        self.kind = kind
        self.unit = unit
        self.help = help
        self.labels = labels
        self.sources = sources
    }
}
