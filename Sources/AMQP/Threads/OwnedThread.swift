internal import Glibc
internal import Synchronization

/// A POSIX thread with a stack of our choice.
///
/// librabbitmq decodes header tables recursively without limit: a legal message overflows a 512 kB stack, and the
/// process is gone. So its callers never run on a pool's threads but on one of these.
package final class OwnedThread: Sendable {
    /// The thread could not be created; the number is `errno`'s.
    package struct Failure: Error, Hashable, Sendable {
        package let code: Int32
    }

    private struct Handle: @unchecked Sendable {
        // `pthread_t` is a number on Linux and may be used from any thread.
        var thread: pthread_t?
    }

    private let handle = Mutex(Handle(thread: nil))
    private let finished: WakeUp

    private init(finished: WakeUp) {
        self.finished = finished
    }

    deinit {
        handle.withLock { handle in
            if let thread = handle.thread { pthread_detach(thread) }
        }
    }

    /// Starts a thread that runs `body` once.
    ///
    /// - Parameter name: what `top -H` shows, cut to 15 bytes by Linux.
    package static func start(
        name: String, stackBytes: Int, _ body: @escaping @Sendable () -> Void
    ) throws(Failure) -> OwnedThread {
        guard let finished = WakeUp() else { throw Failure(code: errno) }
        let owned = OwnedThread(finished: finished)
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        let sized = pthread_attr_setstacksize(&attributes, stackBytes)
        guard sized == 0 else { throw Failure(code: sized) }
        let start = Unmanaged.passRetained(
            Start(name: String(name.prefix(15)), finished: finished, body: body))
        var thread = pthread_t()
        let created = pthread_create(&thread, &attributes, runStart, start.toOpaque())
        guard created == 0 else {
            start.release()
            throw Failure(code: created)
        }
        owned.handle.withLock { $0.thread = thread }
        return owned
    }

    /// Waits for the end of the thread; at most so long if a limit is given. `false` if it still runs.
    ///
    /// On the thread itself it returns `false` at once instead of waiting for itself for ever.
    @discardableResult
    package func join(atMost limit: Duration? = nil) -> Bool {
        guard !isCurrent else { return false }
        guard finished.wait(milliseconds: limit.map { max(0, $0.wholeMilliseconds) }) else { return false }
        let thread = handle.withLock { handle in
            defer { handle.thread = nil }
            return handle.thread
        }
        if let thread { pthread_join(thread, nil) }
        return true
    }

    /// Whether the caller runs on this thread.
    package var isCurrent: Bool {
        handle.withLock { handle in
            guard let thread = handle.thread else { return false }
            return pthread_equal(thread, pthread_self()) != 0
        }
    }
}

/// What a new thread takes with it.
private final class Start: Sendable {
    let name: String
    let finished: WakeUp
    let body: @Sendable () -> Void

    init(name: String, finished: WakeUp, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.finished = finished
        self.body = body
    }
}

private func runStart(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
    name(start.name)
    start.body()
    start.finished.signal()
    return nil
}

/// Best effort: a thread without a name works as well. `pthread_setname_np` is not in Swift's Glibc module.
private func name(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, name.utf8.count)
    close(file)
}
