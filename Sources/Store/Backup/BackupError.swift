import Glibc

/// Why a backup was not made or not restored. None of them is a failure of the store itself.
package enum BackupError: Error, Hashable, Sendable {
    /// There is a file of this name already, and nobody said to replace it.
    case exists(path: String)
    /// The file named is the store's own, or one beside it that SQLite uses.
    case isStore(path: String)
    /// There is no store, or no backup, of this name.
    case missing(path: String)
    /// The file to be made cannot be written; nothing is left of it.
    case cannotWrite(path: String, String)
    /// The copy, or the backup to restore, contradicts itself.
    case damaged(path: String, String)
    /// The other connection is needed for something else: it failed, or another backup is being made.
    case interrupted(String)
    case store(StoreError)

    static func system(_ path: String, _ code: Int32) -> BackupError {
        .cannotWrite(path: path, String(cString: strerror(code)))
    }

    static func wrapping<Value>(
        _ body: () throws(StoreError) -> Value
    ) throws(BackupError) -> Value {
        do throws(StoreError) { return try body() } catch { throw .store(error) }
    }
}

extension BackupError: CustomStringConvertible {
    /// One line: what happened to which thing, and the remedy.
    package var description: String {
        switch self {
        case .exists(let path): "\(path) exists: name another file, or replace it with --force"
        case .isStore(let path): "\(path) belongs to the store itself: name another file"
        case .missing(let path): "\(path) is not there: check the path"
        case .cannotWrite(let path, let text):
            "\(path) cannot be written (\(text)): free space or name another file"
        case .damaged(let path, let text): "\(path) is damaged (\(text)): it was not used"
        case .interrupted(let text): "\(text): try again"
        case .store(let error): error.description
        }
    }
}
