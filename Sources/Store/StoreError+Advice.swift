import Glibc
import RoomCore

extension StoreError {
    /// True where the same call may succeed later without anybody doing anything to the configuration.
    package var isTransient: Bool {
        switch self {
        case .busy, .full, .io, .readOnly, .outOfReach, .unreachable: true
        case .cannotOpen(_, let code): !Self.lastingCodes.contains(code)
        case .conflict, .corrupt, .corruptRoom, .notWritable, .newerSchema, .heldByAnother, .notADatabase,
            .replaced, .denied, .otherShards, .moved, .halfMoved, .settingRefused, .refused, .closed:
            false
        }
    }

    /// True where other batches are fine.
    package var isBatchFault: Bool {
        switch self {
        case .corruptRoom, .refused: true
        default: false
        }
    }

    /// True where a commit may or may not have taken place, and the connection cannot be trusted any more.
    var leavesDoubt: Bool {
        switch self {
        case .io, .unreachable: true
        default: false
        }
    }

    /// Reasons for which opening fails until somebody changes a path or a right.
    private static let lastingCodes: Set<Int32> = [
        ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG, EINVAL,
    ]
}

extension StoreError: CustomStringConvertible {
    /// One line: what happened to which thing, and the remedy.
    package var description: String {
        switch self {
        case .conflict(let rooms):
            "\(rooms.count) room(s) were changed meanwhile, the first is \(rooms.first?.text ?? "none"): decide again"
        case .busy(let path):
            "\(path) is locked by another program: close it there; this worker goes on trying"
        case .full(let path):
            "no space left for \(path): free some; this worker goes on by itself"
        case .io(let code, let text):
            "the store failed to read or write (SQLite code \(code): \(text)): check the disk and the system log"
        case .outOfReach(let path, let code):
            "\(path) cannot be looked at (\(String(cString: strerror(code)))): check its directory; this worker goes on by itself"
        case .corrupt(let text):
            "the database is damaged (\(text)): stop the worker, keep the file and restore a backup"
        case .corruptRoom(let room, let text):
            "the rows of room \(room.text) make no sense (\(text)): its commands are refused, other rooms go on"
        case .readOnly(let path):
            "\(path) takes no writes at present: make its file system writable; this worker goes on by itself"
        case .notWritable(let path):
            "\(path) may not be written: give this user the right to write the file and its directory"
        case .cannotOpen(let path, let code):
            "\(path) cannot be opened (\(String(cString: strerror(code)))): check the path and the rights"
        case .newerSchema(let found, let known):
            "the database has schema \(found), this program knows \(known): use the newer program"
        case .heldByAnother(let pid, let host, let path):
            "\(path) is owned by another worker (pid \(pid.map { "\($0)" } ?? "unknown") on \(host ?? "an unknown host")): stop that one or use another file"
        case .notADatabase(let path, let text):
            "\(path) is not a database of this program (\(text)): name another one; this one was left as it is"
        case .replaced(let path):
            "\(path) was removed or replaced while in use: put the original back or restart the worker"
        case .unreachable(let server, let text):
            "\(server) cannot be reached (\(text)): check the server and the network; this worker goes on by itself"
        case .denied(let server, let text):
            "\(server) refuses this worker (\(text)): check user, password, database and rights"
        case .otherShards(let mine, let theirs, let host):
            "amqp.shards is \(mine), but a worker on \(host) runs with \(theirs) on the same store: give all workers one number"
        case .moved(let path, let target, let at):
            "\(path) was moved to \(target) on \(at): use that store; overtime migrate-store --back takes it back"
        case .halfMoved(let server, let path):
            "\(server) is half of a migration from sqlite:\(path): run overtime migrate-store again until it is done, or drop the schema \(PostgresSchema.name) to give it up"
        case .settingRefused(let text):
            "the database did not take a setting that durability rests on: \(text)"
        case .refused(let text):
            "the store refuses the batch (\(text)): its commands are tried one at a time"
        case .closed:
            "the store is closed"
        }
    }
}
