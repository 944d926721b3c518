import Glibc

/// What one thread hands to another: elements in order, taken all at once.
///
/// Taking everything is what makes batches large under load and immediate when idle. The waiting thread sleeps in the
/// kernel on the monotonic clock, so that a step of the wall clock neither delays nor hurries it.
///
/// `@unchecked Sendable` because the state is only touched with the mutex held; `Mutex` of the standard library has no
/// condition to wait on.
package final class Mailbox<Element: Sendable>: @unchecked Sendable {
    // On the heap at fixed addresses: pthread objects must not move.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let arrived: UnsafeMutablePointer<pthread_cond_t>
    private var waiting: [Element] = []
    private var closed = false

    package init() {
        mutex = .allocate(capacity: 1)
        arrived = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(arrived, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(arrived)
        pthread_mutex_destroy(mutex)
        arrived.deallocate()
        mutex.deallocate()
    }

    /// Adds elements at the end and wakes the taker; false where the mailbox is closed and nothing was added.
    @discardableResult
    package func put(_ elements: some Sequence<Element>) -> Bool {
        locked {
            guard !closed else { return false }
            waiting.append(contentsOf: elements)
            if !waiting.isEmpty { pthread_cond_signal(arrived) }
            return true
        }
    }

    /// Adds one element; see `put` of several.
    @discardableResult
    package func put(_ element: Element) -> Bool {
        put(CollectionOfOne(element))
    }

    /// Everything that has arrived, in order. Waits for the first element: for ever without a time-out, not at all with 0.
    /// Empty after the time-out, and at once when the mailbox is closed and drained.
    package func take(timeoutMilliseconds: Int64?) -> [Element] {
        var spare: [Element] = []
        take(into: &spare, timeoutMilliseconds: timeoutMilliseconds)
        return spare
    }

    /// The same into the caller's array, which is emptied first; its memory becomes the mailbox's next buffer,
    /// so that a steady exchange allocates nothing.
    package func take(into elements: inout [Element], timeoutMilliseconds: Int64?) {
        elements.removeAll(keepingCapacity: true)
        let deadline = timeoutMilliseconds.map(Self.deadline)
        locked {
            while waiting.isEmpty, !closed {
                if var deadline {
                    if pthread_cond_timedwait(arrived, mutex, &deadline) == ETIMEDOUT { break }
                } else {
                    pthread_cond_wait(arrived, mutex)
                }
            }
            swap(&elements, &waiting)
        }
    }

    /// Takes no more elements and wakes every taker; what has arrived can still be taken.
    package func close() {
        locked {
            closed = true
            pthread_cond_broadcast(arrived)
        }
    }

    /// Tells an empty answer after a time-out from the end.
    package var isClosed: Bool {
        locked { closed }
    }

    /// How many elements wait, for bounds and metrics.
    package var count: Int {
        locked { waiting.count }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    private static func deadline(after milliseconds: Int64) -> timespec {
        // A century is for ever; more would overflow.
        let wait = UInt64(min(max(milliseconds, 0), 3_155_760_000_000)) * 1_000_000
        let end = MonotonicClock.nanoseconds() + wait
        return timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
    }
}
