import Glibc

/// The signals of a service: SIGTERM and SIGINT ask it to stop, SIGPIPE, SIGHUP and SIGXFSZ are none of its business.
///
/// They are blocked in every thread and taken by one thread with `sigwait`, so that the callback is ordinary code
/// and not a signal handler, in which nearly nothing is allowed.
package enum Signals {
    package enum Stop: Sendable, Equatable {
        /// The first signal: finish what is in hand.
        case soft
        /// Every further signal: stop at once.
        case now
    }

    /// To be called first in `main`: threads inherit the mask, so a thread started earlier would still be hit.
    package static func block() {
        _ = signal(SIGPIPE, SIG_IGN)
        _ = signal(SIGHUP, SIG_IGN)
        // A file at the limit of its size is an error of the write, as a full disk is.
        _ = signal(SIGXFSZ, SIG_IGN)
        var set = stopSet()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Calls back on a thread of its own at each stop signal, for as long as the process lives.
    package static func listen(_ callback: @escaping @Sendable (Stop) -> Void) throws(WorkThread.Failure) {
        try WorkThread.detached(name: "signals", stackBytes: 256 * 1024) {
            var set = stopSet()
            var stop = Stop.soft
            while true {
                var number: Int32 = 0
                guard sigwait(&set, &number) == 0 else { continue }
                callback(stop)
                stop = .now
            }
        }
    }

    /// What a service does with them: the first calls back, the next one ends the process at once, with 0, since what
    /// is in hand is safe. False where it cannot be listened for them.
    package static func stopService(log: Log, _ callback: @escaping @Sendable () -> Void) -> Bool {
        do throws(WorkThread.Failure) {
            try listen { stop in
                if stop == .now { ProcessExit.ok.endNow() }
                callback()
            }
            return true
        } catch {
            log.error("cannot listen for signals", ["error": error.reason])
            return false
        }
    }

    private static func stopSet() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGINT)
        return set
    }
}
