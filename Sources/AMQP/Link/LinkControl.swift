internal import Glibc
internal import Synchronization

/// What other threads may do to the I/O thread: wake it, stop it, and cut its socket if it hangs in the library.
///
/// The library closes its socket whenever it likes, and its number may be given to somebody else at once. So the
/// socket is held here as a duplicate: shutting that down reaches the same connection and never a stranger's.
final class LinkControl: Sendable {
    /// Commands are waiting.
    let wake: WakeUp
    /// Never cleared: once it is signalled, every wait ends.
    let stop: WakeUp

    private struct Socket {
        var duplicate: Int32?
        /// A login cannot be ended politely, a session can.
        var isSession = false
        var isStopping = false
        var wasCut = false
    }

    private let socket = Mutex(Socket())
    private let lastBeat = Atomic<Int64>(0)

    init?() {
        guard let wake = WakeUp(), let stop = WakeUp() else { return nil }
        self.wake = wake
        self.stop = stop
    }

    deinit {
        release()
    }

    var isStopping: Bool { socket.withLock { $0.isStopping } }

    /// Asks the I/O thread to end. A login in progress is cut, since it would not hear.
    func requestStop() {
        socket.withLock { socket in
            socket.isStopping = true
            if !socket.isSession, let duplicate = socket.duplicate { shutdown(duplicate, Int32(SHUT_RDWR)) }
        }
        stop.signal()
        wake.signal()
    }

    /// Takes note of a new connection's socket. It throws if the link is being stopped.
    func hold(_ descriptor: Int32) throws(AMQPError) {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else { throw .noDescriptor }
        let isStopping = socket.withLock { socket in
            if let old = socket.duplicate { close(old) }
            socket = Socket(duplicate: duplicate, isStopping: socket.isStopping)
            return socket.isStopping
        }
        if isStopping { throw .stopped }
    }

    /// The duplicate, to wait on: unlike the library's own it stays valid until `release`.
    var descriptor: Int32? { socket.withLock { $0.duplicate } }

    /// Whether the socket takes more data without waiting.
    var hasRoom: Bool {
        guard let descriptor else { return false }
        return WakeUp.poll(descriptor, events: POLLOUT, or: nil, milliseconds: 0) == .ready
    }

    /// Holds back what does not fill a packet, until it is let go; the kernel does after 200 ms.
    func cork(_ isOn: Bool) {
        guard let descriptor else { return }
        var value: Int32 = isOn ? 1 : 0
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    func beginSession() {
        beat()
        socket.withLock { $0.isSession = true }
    }

    /// Ends the TCP connection, whatever its state; called before the library's connection is destroyed.
    func release() {
        socket.withLock { socket in
            if let duplicate = socket.duplicate {
                shutdown(duplicate, Int32(SHUT_RDWR))
                close(duplicate)
            }
            socket = Socket(isStopping: socket.isStopping)
        }
    }

    /// Ends a call that hangs in the library: the only touch from outside its thread.
    func cut() {
        socket.withLock { socket in
            guard let duplicate = socket.duplicate else { return }
            socket.wasCut = true
            shutdown(duplicate, Int32(SHUT_RDWR))
        }
    }

    /// Whether the present connection was cut by the watchdog.
    var wasCut: Bool { socket.withLock { $0.wasCut } }

    /// The I/O thread is alive.
    func beat() {
        lastBeat.store(Instant.now.milliseconds, ordering: .relaxed)
    }

    /// How long the I/O thread has not been heard of; 0 outside a session.
    var silence: Int64 {
        guard socket.withLock({ $0.isSession }) else { return 0 }
        return Instant.now.milliseconds - lastBeat.load(ordering: .relaxed)
    }
}

/// Cuts a connection whose thread has been silent for three heartbeats.
///
/// In 0.11 a publish waits for ever on a peer that neither reads nor closes. The library has no limit for it, but
/// its socket has an end.
final class Watchdog: Sendable {
    private let quit: WakeUp
    private let thread: OwnedThread

    init?(control: LinkControl, heartbeatSeconds: UInt16) {
        guard let quit = WakeUp() else { return nil }
        let heartbeat = Int64(max(1, heartbeatSeconds)) * 1000
        let body: @Sendable () -> Void = {
            while !quit.wait(milliseconds: heartbeat / 2) {
                if control.silence > 3 * heartbeat { control.cut() }
            }
        }
        do {
            thread = try OwnedThread.start(name: "amqp-watch", stackBytes: 1 << 18, body)
        } catch {
            return nil
        }
        self.quit = quit
    }

    func stop() {
        quit.signal()
        thread.join()
    }

    deinit {
        quit.signal()
    }
}
