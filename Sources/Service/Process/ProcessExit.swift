import Glibc

/// How a process ends, as the contract numbers it, so that scripts and service managers can tell the cases apart.
package enum ProcessExit: Int32, Sendable {
    case ok = 0
    /// The command was understood and refused.
    case refused = 1
    /// A wrong option or value on the command line.
    case usage = 2
    /// No reply in time, or nothing there to ask.
    case noReply = 3
    /// The system gave no thread or no descriptor; a restart may help (sysexits' EX_OSERR).
    case resources = 71
    /// Standard output could not be written (sysexits' EX_IOERR).
    case output = 74
    /// Wrong for good: configuration, password, rights, other arguments. Restarting does not help (sysexits' EX_CONFIG).
    case configuration = 78

    /// Ends the process now.
    package func end() -> Never {
        exit(rawValue)
    }

    /// Ends the process at once, without running what is registered for an exit: other threads may be anywhere.
    package func endNow() -> Never {
        _exit(rawValue)
    }
}
