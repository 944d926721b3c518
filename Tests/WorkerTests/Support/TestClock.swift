import Service
import Synchronization

/// A wall clock that stands where it was put.
final class TestClock: WallClock {
    private let milliseconds: Mutex<Int64>

    init(_ milliseconds: Int64) { self.milliseconds = Mutex(milliseconds) }

    func nowMilliseconds() -> Int64 { milliseconds.withLock { $0 } }
    func set(_ value: Int64) { milliseconds.withLock { $0 = value } }
    func advance(_ span: Int64) { milliseconds.withLock { $0 += span } }
}
