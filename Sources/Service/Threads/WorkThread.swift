import Glibc
import Synchronization

/// A named thread with a stack of known size that can be waited for.
///
/// C libraries block and some need a large stack; Swift's cooperative pool offers neither, so their callers run here.
package final class WorkThread: Sendable {
    package struct Failure: Error, Sendable, Equatable {
        package let reason: String
    }

    private let handle: Mutex<pthread_t?>

    /// Starts the thread. The name is cut to the 15 bytes that Linux shows.
    package init(
        name: String, stackBytes: Int = 1 << 20, body: @escaping @Sendable () -> Void
    ) throws(Failure) {
        handle = Mutex(try Self.start(name: name, stackBytes: stackBytes, body: body))
    }

    deinit {
        if let thread = handle.withLock({ $0 }) { pthread_detach(thread) }
    }

    /// Waits until the body has returned; further calls return at once, calls meanwhile wait too.
    ///
    /// Must not be called on the thread itself, which would wait for its own end.
    package func join() {
        handle.withLock { thread in
            guard let running = thread else { return }
            pthread_join(running, nil)
            thread = nil
        }
    }

    /// Starts a thread that nobody waits for, for work that lasts as long as the process.
    package static func detached(
        name: String, stackBytes: Int = 1 << 20, body: @escaping @Sendable () -> Void
    ) throws(Failure) {
        pthread_detach(try start(name: name, stackBytes: stackBytes, body: body))
    }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private static func start(
        name: String, stackBytes: Int, body: @escaping @Sendable () -> Void
    ) throws(Failure) -> pthread_t {
        var thread = pthread_t()
        let code = create(&thread, stackBytes: stackBytes, start: Start(name: name, body: body))
        guard code == 0 else {
            throw Failure(
                reason:
                    "thread \(name) with a stack of \(stackBytes) bytes: \(String(cString: strerror(code)))")
        }
        return thread
    }

    /// The C call and its error number. In one function with `start` it crashes the compiler (6.3.1, `SendNonSendable`).
    private static func create(_ thread: inout pthread_t, stackBytes: Int, start: Start) -> Int32 {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        let code = pthread_attr_setstacksize(&attributes, max(stackBytes, 128 * 1024))
        guard code == 0 else { return code }
        let context = Unmanaged.passRetained(start)
        let created = pthread_create(&thread, &attributes, run, context.toOpaque())
        if created != 0 { context.release() }
        return created
    }

    private static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { raw in
        guard let raw else { return nil }
        let start = Unmanaged<Start>.fromOpaque(raw).takeRetainedValue()
        setName(start.name)
        start.body()
        return nil
    }

    /// Names the calling thread through the kernel's file: Glibc's map hides the GNU call. Only for people who look, so
    /// a failure is no matter.
    private static func setName(_ name: String) {
        let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = write(descriptor, name, min(name.utf8.count, 15))
        close(descriptor)
    }
}
