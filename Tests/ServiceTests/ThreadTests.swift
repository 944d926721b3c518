import Glibc
import Synchronization
import Testing

@testable import Service

/// Tests whose threads wait for each other have a limit instead of hanging.
@Suite(.timeLimit(.minutes(1)))
struct ThreadTests {
    @Test("every element arrives once and in order, whatever the batches")
    func order() throws {
        let mailbox = Mailbox<Int>()
        let producer = try WorkThread(name: "producer") {
            var next = 0
            while next < 100_000 {
                let end = min(next + next % 7 + 1, 100_000)
                mailbox.put(next..<end)
                next = end
            }
            mailbox.close()
        }
        var received: [Int] = []
        var buffer: [Int] = []
        repeat {
            mailbox.take(into: &buffer, timeoutMilliseconds: 10_000)
            received += buffer
        } while !buffer.isEmpty
        producer.join()
        #expect(received == Array(0..<100_000))
        #expect(mailbox.isClosed)
    }

    @Test("an element wakes a taker that waits without limit")
    func wake() throws {
        let request = Mailbox<String>()
        let answer = Mailbox<[String]>()
        let taker = try WorkThread(name: "taker") {
            answer.put([])
            answer.put(request.take(timeoutMilliseconds: nil))
        }
        #expect(answer.take(timeoutMilliseconds: 10_000) == [[]])
        request.put("hello")
        #expect(answer.take(timeoutMilliseconds: 10_000) == [["hello"]])
        taker.join()
    }

    @Test("a time-out ends in time, zero at once, and an absurd one is no overflow")
    func timeouts() {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.take(timeoutMilliseconds: 0).isEmpty)
        #expect(mailbox.take(timeoutMilliseconds: -5).isEmpty)
        let start = MonotonicClock.milliseconds()
        #expect(mailbox.take(timeoutMilliseconds: 30).isEmpty)
        #expect(MonotonicClock.milliseconds() - start >= 29)
        #expect(!mailbox.isClosed)
        mailbox.put(1)
        #expect(mailbox.take(timeoutMilliseconds: .max) == [1])
    }

    @Test("a closed mailbox takes nothing more, gives what it has and wakes every taker")
    func closing() throws {
        let mailbox = Mailbox<Int>()
        mailbox.put([1, 2])
        mailbox.close()
        #expect(!mailbox.put(3))
        #expect(mailbox.count == 2)
        #expect(mailbox.take(timeoutMilliseconds: nil) == [1, 2])
        #expect(mailbox.take(timeoutMilliseconds: nil).isEmpty)

        let waited = Mailbox<Int>()
        let takers = try (0..<3).map { _ in
            try WorkThread(name: "taker") { _ = waited.take(timeoutMilliseconds: nil) }
        }
        waited.close()
        for taker in takers { taker.join() }
    }

    @Test("a thread has its name and its stack, and can be joined twice")
    func workThread() throws {
        let seen = Mutex("")
        let thread = try WorkThread(name: "a-rather-long-name", stackBytes: 16 << 20) {
            // Half of the stack in use: a default of 8 MiB would not carry it.
            withUnsafeTemporaryAllocation(byteCount: 9 << 20, alignment: 16) { $0[0] = 1 }
            if case .success(let name) = FileText.bytes(path: "/proc/thread-self/comm", limit: 100) {
                seen.withLock { $0 = String(decoding: name, as: UTF8.self) }
            }
        }
        thread.join()
        thread.join()
        #expect(seen.withLock { $0 } == "a-rather-long-n\n")
    }

    @Test("a thread that cannot be had is an error and not a trap")
    func impossibleThread() {
        #expect(throws: WorkThread.Failure.self) { try WorkThread(name: "huge", stackBytes: 1 << 60) {} }
    }
}
