import FoundationEssentials
import Testing

@testable import Metrics

@Suite("The table of metrics")
struct MetricTableTests {
    @Test("every metric is described", arguments: Metric.allCases)
    func described(metric: Metric) {
        let definition = metric.definition
        #expect(!definition.sources.isEmpty)
        #expect(!definition.help.hasSuffix("."))
        let name = metric.rawValue
        #expect(name.hasPrefix("overtime_") || name.hasPrefix("process_"))
        #expect((definition.kind == .counter) == name.hasSuffix("_total"))
        #expect((definition.unit == .seconds) == name.hasSuffix("_seconds"))
        #expect((definition.unit == .bytes) == name.hasSuffix("_bytes"))
        if case .histogram(let bounds) = definition.kind {
            #expect(bounds == bounds.sorted() && Set(bounds).count == bounds.count && bounds.count >= 8)
        }
    }

    /// Write `docs/metrics.md` anew with `OVERTIME_WRITE_DOCS=1 swift test --filter MetricTableTests`.
    @Test("docs/metrics.md shows exactly this table")
    func documented() throws {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/metrics.md")
        let rows = Metric.allCases.map { metric in
            let definition = metric.definition
            let labels = definition.labels.map { "`\($0)`" }.joined(separator: ", ")
            let from =
                definition.sources.count == MetricDefinition.Source.allCases.count
                ? "both" : definition.sources.map(\.rawValue).joined(separator: ", ")
            return
                "| `\(metric.rawValue)` | \(definition.kind.name) | \(definition.unit.rawValue) | \(labels) | \(from) | \(definition.help) |"
        }
        var lines = try String(contentsOf: path, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false
        ).map(String.init)
        // Other tables of the page may begin with a metric as well; only this one goes on with its type.
        let types = ["counter", "gauge", "histogram"]
        let isRow = { (line: String) in
            let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
            return cells.count >= 2 && types.contains { cells[1] == $0 + " " }
        }
        if ProcessInfo.processInfo.environment["OVERTIME_WRITE_DOCS"] != nil,
            let head = lines.firstIndex(where: { $0.hasPrefix("| --- | --- | --- | --- | --- |") })
        {
            lines.removeAll(where: isRow)
            lines.insert(contentsOf: rows, at: head + 1)
            try lines.joined(separator: "\n").write(to: path, atomically: true, encoding: .utf8)
        }
        #expect(lines.filter(isRow) == rows)
    }
}
