import Testing

@testable import Metrics

@Suite("The text of metrics")
struct PrometheusTextTests {
    @Test("a counter, a gauge and a histogram are written as Prometheus reads them")
    func format() {
        var histogram = Histogram(.batchItems)
        for value in [1.0, 3, 512, 9_000] { histogram.observe(value) }
        var report = MetricReport()
        report.set(.reconnects, Int64(3), "consumer")
        report.set(.clockOffset, -0.25)
        report.set(.batchItems, histogram)
        let worker = PrometheusText.render(report, of: .worker)
        #expect(worker.contains("# TYPE overtime_reconnects_total counter\n"))
        #expect(worker.contains("overtime_reconnects_total{connection=\"consumer\"} 3\n"))
        #expect(worker.contains("overtime_batch_items_bucket{le=\"1\"} 1\n"))
        #expect(worker.contains("overtime_batch_items_bucket{le=\"4\"} 2\n"))
        #expect(worker.contains("overtime_batch_items_bucket{le=\"512\"} 3\n"))
        #expect(worker.contains("overtime_batch_items_bucket{le=\"+Inf\"} 4\n"))
        #expect(worker.contains("overtime_batch_items_sum 9516\novertime_batch_items_count 4\n"))
        #expect(!worker.contains("clock_offset"))
        #expect(
            PrometheusText.render(report, of: .scheduler).contains("overtime_clock_offset_seconds -0.25\n"))
    }

    @Test("what would break a line is escaped")
    func escaping() {
        var report = MetricReport()
        report.set(.buildInfo, Int64(1), "a\"b\\c\nd", "worker")
        #expect(
            PrometheusText.render(report, of: .worker).contains(
                #"overtime_build_info{version="a\"b\\c\nd",component="worker"} 1"# + "\n"))
    }

    @Test(
        "numbers are those of Go",
        arguments: [
            (0.0, "0"), (10, "10"), (0.005, "0.005"), (0.0001, "0.0001"), (.infinity, "+Inf"), (.nan, "NaN"),
            (1e300, "1e+300"),
        ] as [(Double, String)])
    func numbers(value: Double, text: String) {
        #expect(PrometheusText.number(value) == text)
    }

    @Test("a value on a bound belongs below it, and one above all counts too")
    func bounds() {
        var histogram = Histogram(.storeCommit)
        histogram.observe(0.001)
        histogram.observe(11)
        histogram.observe(-1)
        #expect(histogram.counts[3] == 1)
        #expect(histogram.counts.first == 1)
        #expect(histogram.counts.last == 1)
        #expect(histogram.count == 3)
    }
}
