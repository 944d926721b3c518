/// A report in Prometheus' text format 0.0.4.
package enum PrometheusText {
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Every metric of a kind of process, also those without a value: what they mean is known.
    package static func render(_ report: MetricReport, of source: MetricDefinition.Source) -> String {
        var text = ""
        for metric in Metric.all(of: source) {
            let definition = metric.definition
            text += "# HELP \(metric.rawValue) \(escaped(definition.help, quotes: false))\n"
            text += "# TYPE \(metric.rawValue) \(definition.kind.name)\n"
            for sample in report.samples[metric] ?? [] {
                let labels = Array(zip(definition.labels, sample.labels))
                switch sample.value {
                case .integer(let value): line(metric.rawValue, labels, "\(value)", into: &text)
                case .real(let value): line(metric.rawValue, labels, number(value), into: &text)
                case .histogram(let histogram): lines(metric.rawValue, labels, histogram, into: &text)
                }
            }
        }
        return text
    }

    private static func lines(
        _ name: String, _ labels: [(String, String)], _ histogram: Histogram, into text: inout String
    ) {
        var total: Int64 = 0
        for (index, count) in histogram.counts.enumerated() {
            total += count
            let bound = index < histogram.bounds.count ? number(histogram.bounds[index]) : "+Inf"
            line(name + "_bucket", labels + [("le", bound)], "\(total)", into: &text)
        }
        line(name + "_sum", labels, number(histogram.sum), into: &text)
        line(name + "_count", labels, "\(total)", into: &text)
    }

    private static func line(
        _ name: String, _ labels: [(String, String)], _ value: String, into text: inout String
    ) {
        text += name
        if !labels.isEmpty {
            text += "{"
            text += labels.map { "\($0)=\"\(escaped($1, quotes: true))\"" }.joined(separator: ",")
            text += "}"
        }
        text += " \(value)\n"
    }

    /// As Go reads it: `0.005`, `10`, `1e-04`, `NaN`, `+Inf`.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return "\(whole)" }
        return "\(value)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
