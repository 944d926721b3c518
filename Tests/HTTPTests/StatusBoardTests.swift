import Metrics
import Synchronization
import Testing

@testable import HTTP

@Suite("What a service says of itself")
struct StatusBoardTests {
    private final class Uptime: Sendable {
        let milliseconds = Mutex<Int64>(1_000)
    }

    private let uptime = Uptime()
    private let board: StatusBoard

    init() {
        let uptime = uptime
        board = StatusBoard(source: .worker, version: "1", startedAt: 0) {
            uptime.milliseconds.withLock { $0 }
        }
    }

    private func turn(at milliseconds: Int64, notReady: [String] = []) {
        uptime.milliseconds.withLock { $0 = milliseconds }
        board.turned(at: milliseconds) { StatusBoard.Status(notReady: notReady) }
    }

    @Test("before its first turn a process is healthy and not ready")
    func start() {
        #expect(board.answer("/healthz")?.status == 200)
        #expect(board.answer("/readyz") == HTTPAnswer(503, "start: not done yet\n"))
    }

    @Test("what is not ready is said line by line")
    func readiness() {
        turn(at: 1_000, notReady: ["broker: away", "store: it fails"])
        #expect(board.answer("/readyz") == HTTPAnswer(503, "broker: away\nstore: it fails\n"))
        #expect(board.answer("/metrics")?.body.contains("\novertime_ready 0\n") == true)
        turn(at: 1_300)
        #expect(board.answer("/readyz") == HTTPAnswer(200, "ready\n"))
        #expect(board.answer("/metrics")?.body.contains("\novertime_ready 1\n") == true)
    }

    @Test("a work loop that has not turned for 30 s is neither healthy nor ready")
    func stuck() {
        turn(at: 1_000)
        uptime.milliseconds.withLock { $0 = 30_999 }
        #expect(board.answer("/healthz")?.status == 200)
        uptime.milliseconds.withLock { $0 = 31_000 }
        #expect(board.answer("/healthz") == HTTPAnswer(503, "work loop: has not turned for 30 s\n"))
        #expect(board.answer("/readyz")?.status == 503)
        #expect(board.answer("/metrics")?.body.contains("\novertime_work_loop_age_seconds 30\n") == true)
        turn(at: 32_000)
        #expect(board.answer("/healthz")?.status == 200)
    }

    @Test("a report is taken four times a second, however often the loop turns")
    func cost() {
        var reports = 0
        for uptime: Int64 in 0..<1_000 {
            board.turned(at: uptime) {
                reports += 1
                return StatusBoard.Status()
            }
        }
        #expect(reports == 4)
    }

    @Test("other paths have no answer")
    func paths() {
        for path in ["", "/", "/metrics/", "/Metrics", "/healthz\u{0}"] { #expect(board.answer(path) == nil) }
    }
}
