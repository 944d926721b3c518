package import Metrics
import Service
import Synchronization

/// What a service says of itself, between the thread of its work and that of HTTP.
///
/// The work loop tells each turn (one atomic store) and some times a second hands over a report, which nobody changes any more.
/// HTTP only ever reads that report, so that a scrape costs the work nothing and a stuck work loop still has an answer.
package final class StatusBoard: Sendable {
    /// Milliseconds without a turn of the work loop after which the process counts as stuck.
    private static let patience: Int64 = 30_000
    /// Milliseconds between two reports.
    private static let interval: Int64 = 250

    /// What the work loop hands over.
    package struct Status: Sendable {
        package var report = MetricReport()
        /// What is not ready, a line each; empty where all is.
        package var notReady: [String] = []

        package init(notReady: [String] = []) { self.notReady = notReady }
    }

    private let source: MetricDefinition.Source
    private let version: String
    private let startedAt: Int64
    private let uptime: @Sendable () -> Int64
    private let turnedAt: Atomic<Int64>
    private let nextReportAt = Atomic<Int64>(.min)
    private let status = Mutex(Status(notReady: ["start: not done yet"]))

    package init(
        source: MetricDefinition.Source, version: String, startedAt: Int64,
        uptime: @escaping @Sendable () -> Int64 = { MonotonicClock.milliseconds() }
    ) {
        self.source = source
        self.version = version
        self.startedAt = startedAt
        self.uptime = uptime
        turnedAt = Atomic(uptime())
    }

    // MARK: The work's side

    /// Notes a turn of the work loop, and takes its status where it is time for one.
    package func turned(at uptime: Int64, status: () -> Status) {
        turnedAt.store(uptime, ordering: .relaxed)
        guard uptime >= nextReportAt.load(ordering: .relaxed) else { return }
        nextReportAt.store(uptime + Self.interval, ordering: .relaxed)
        let current = status()
        self.status.withLock { $0 = current }
    }

    // MARK: HTTP's side

    /// The answer to a path; nil where there is none.
    package func answer(_ path: String) -> HTTPAnswer? {
        switch path {
        case "/healthz": health
        case "/readyz": readiness
        case "/metrics": metrics
        default: nil
        }
    }

    private var age: Int64 { max(uptime() - turnedAt.load(ordering: .relaxed), 0) }

    private var stuck: String? {
        let age = age
        return age < Self.patience ? nil : "work loop: has not turned for \(age / 1_000) s"
    }

    private var health: HTTPAnswer {
        stuck.map { HTTPAnswer(503, $0 + "\n") } ?? HTTPAnswer(200, "healthy\n")
    }

    private var missing: [String] {
        (stuck.map { [$0] } ?? []) + status.withLock { $0.notReady }
    }

    private var readiness: HTTPAnswer {
        let missing = missing
        guard !missing.isEmpty else { return HTTPAnswer(200, "ready\n") }
        return HTTPAnswer(503, missing.map { $0 + "\n" }.joined())
    }

    private var metrics: HTTPAnswer {
        var report = status.withLock { $0.report }
        report.set(.buildInfo, Int64(1), version, source.rawValue)
        report.set(.ready, missing.isEmpty)
        report.set(.workLoopAge, Double(age) / 1_000)
        report.set(.processStart, Double(startedAt) / 1_000)
        if let bytes = ProcessMemory.residentBytes { report.set(.residentMemory, bytes) }
        return HTTPAnswer(
            200, PrometheusText.render(report, of: source), contentType: PrometheusText.contentType)
    }
}
