import Service
import Synchronization

/// One request for a backup, from the thread that took it to the one that owns the store, and its outcome back.
package final class BackupOrder: Sendable {
    package enum Outcome: Hashable, Sendable {
        /// `takenAt`: milliseconds since 1970; the file holds everything that was committed by then.
        case done(bytes: Int64, takenAt: Int64)
        case refused(String)
    }

    /// An absolute path, as the worker sees it.
    package let path: String
    /// An older file of this name is exchanged.
    package let replaces: Bool
    private let outcome = Mailbox<Outcome>()
    private let givenUp = Atomic<Bool>(false)

    package init(path: String, replaces: Bool) {
        self.path = path
        self.replaces = replaces
    }

    func end(_ result: Outcome) { outcome.put(result) }

    /// Nobody waits for it any more.
    func giveUp() { givenUp.store(true, ordering: .relaxed) }
    var isGivenUp: Bool { givenUp.load(ordering: .relaxed) }

    /// Nil where the time was up before.
    package func wait(milliseconds: Int64) -> Outcome? {
        outcome.take(timeoutMilliseconds: milliseconds).first
    }
}
