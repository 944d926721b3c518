import Service
import Store
import Synchronization

/// Makes backups between batches, one at a time, a slice of pages each time so that no window waits for it.
///
/// A failure of a backup is the backup's: the store is not taken to fail because of it.
final class BackupDesk {
    /// 512 KiB: about a millisecond.
    private static let slice = 128

    private let source: (any BackupSource)?
    private let clock: any WallClock
    private let log: Log
    private var current: (order: BackupOrder, file: BackupFile)?
    /// True while another thread checks and syncs a copy.
    private let completing = Flag()

    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set(_ isSet: Bool) { value.store(isSet, ordering: .releasing) }
    }

    init(source: (any BackupSource)?, clock: any WallClock, log: Log) {
        self.source = source
        self.clock = clock
        self.log = log
    }

    /// True while there are pages to copy.
    var isCopying: Bool { current != nil }

    func take(_ order: BackupOrder) {
        guard let source else { return order.end(.refused("this worker's store has no backup")) }
        guard current == nil, !completing.isSet else {
            return order.end(.refused("another backup is being made: wait for its end"))
        }
        do throws(BackupError) {
            let file = try BackupFile(order.path, store: source.path, replaces: order.replaces)
            try source.beginBackup(to: file)
            current = (order, file)
            log.info("backup begins", ["file": file.path])
        } catch {
            refuse(order, error.description)
        }
    }

    /// Copies a slice.
    func step() {
        guard let (order, file) = current, let source else { return }
        guard !order.isGivenUp else { return abandon("nobody waits for it any more") }
        do throws(BackupError) {
            guard try source.continueBackup(pages: Self.slice) else { return }
            current = nil
            complete(order, file, takenAt: clock.nowMilliseconds())
        } catch {
            current = nil
            file.discard()
            refuse(order, error.description)
        }
    }

    /// Ends what is under way, because the worker stops.
    func stop() { abandon("the worker is stopping") }

    private func abandon(_ reason: String) {
        guard let (order, file) = current else { return }
        current = nil
        source?.abandonBackup()
        file.discard()
        refuse(order, reason)
    }

    private func refuse(_ order: BackupOrder, _ reason: String) {
        log.warning("backup not made", ["file": order.path, "error": reason])
        order.end(.refused(reason))
    }

    /// Reading the whole copy and syncing it takes its time, and has nothing to do with the store.
    private func complete(_ order: BackupOrder, _ file: BackupFile, takenAt: Int64) {
        completing.set(true)
        do throws(WorkThread.Failure) {
            try WorkThread.detached(name: "backup") { [completing, log] in
                let outcome: BackupOrder.Outcome
                do throws(BackupError) {
                    let bytes = try file.complete()
                    outcome = .done(bytes: bytes, takenAt: takenAt)
                    log.info("backup made", ["file": file.path, "bytes": bytes])
                } catch {
                    outcome = .refused(error.description)
                    log.warning("backup not made", ["file": file.path, "error": error.description])
                }
                completing.set(false)
                order.end(outcome)
            }
        } catch {
            completing.set(false)
            file.discard()
            refuse(order, error.reason)
        }
    }
}
