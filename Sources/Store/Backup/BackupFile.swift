import Glibc

/// The file a backup becomes: first a part beside it, under its own name only once it is whole, checked and durable.
package struct BackupFile: Sendable {
    package let path: String
    private let replaces: Bool
    let part: String

    /// Refuses what must not be written over. Nothing but names is looked at: a descriptor on the store's file would
    /// drop SQLite's locks when it is closed.
    ///
    /// - Parameter replaces: an older file of this name is exchanged for the new one in the end.
    package init(_ path: String, store: String, replaces: Bool) throws(BackupError) {
        let (folder, name) = Self.split(path)
        guard !name.isEmpty, name != ".", name != "..", let found = realpath(folder, nil) else {
            throw .system(path, name.isEmpty ? EISDIR : errno)
        }
        let resolved = String(cString: found)
        free(found)
        self.path = resolved == "/" ? "/" + name : resolved + "/" + name
        self.replaces = replaces
        part = self.path + ".part"
        let own = [store] + StorePath.companions.map { store + $0 }
        guard !own.contains(self.path), !own.contains(part) else { throw .isStore(path: self.path) }
        // A link or another name of the store: renaming over it would be harmless, and surely not what was meant.
        if let identity = FileIdentity(of: self.path), identity == FileIdentity(of: store) {
            throw .isStore(path: self.path)
        }
        var status = stat()
        guard lstat(self.path, &status) == 0 else { return }
        guard replaces else { throw .exists(path: self.path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .system(self.path, EEXIST) }
    }

    /// Makes the empty part, readable by its owner only. What an interrupted backup left is removed.
    func prepare() throws(BackupError) {
        discard()
        let descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(part, errno) }
        close(descriptor)
    }

    /// Removes the part, and what SQLite may have left beside it.
    package func discard() {
        for ending in [""] + StorePath.companions { unlink(part + ending) }
    }

    /// Looks through the whole copy, makes it durable and gives it its name. Takes time in proportion to its size, and
    /// touches nothing of the store, so it may run on any thread.
    ///
    /// - Returns: its size.
    package func complete() throws(BackupError) -> Int64 {
        do throws(BackupError) {
            try Self.check(part)
            let size = try Self.sync(part)
            try publish()
            return size
        } catch {
            discard()
            throw error
        }
    }

    private func publish() throws(BackupError) {
        if replaces {
            guard rename(part, path) == 0 else { throw .system(path, errno) }
        } else if link(part, path) == 0 {
            unlink(part)
        } else {
            guard errno != EEXIST else { throw .exists(path: path) }
            // A file system without hard links.
            guard rename(part, path) == 0 else { throw .system(path, errno) }
        }
        try StorePath.syncFolder(of: path)
    }

    /// Turns the copy into a file that stands alone, without a log beside it, and looks for damage.
    static func check(_ path: String) throws(BackupError) {
        do throws(StoreError) {
            let connection = try Connection(path: path, mayCreate: false)
            try connection.takeExclusively()
            guard try connection.text("PRAGMA journal_mode = delete") == "delete" else {
                throw .settingRefused(
                    "SQLite kept journal_mode, delete was asked for: use the library of the distribution")
            }
            let found = try connection.text("PRAGMA integrity_check(1)")
            guard found == "ok" else {
                throw .corrupt(found.split(separator: "\n").joined(separator: "; "))
            }
            guard try connection.integer("PRAGMA application_id") == Schema.applicationID else {
                throw .notADatabase(path: path, "its application id is another")
            }
        } catch {
            switch error {
            case .corrupt(let text), .notADatabase(_, let text): throw .damaged(path: path, text)
            default: throw .store(error)
            }
        }
    }

    static func sync(_ path: String) throws(BackupError) -> Int64 {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw .system(path, errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fsync(descriptor) == 0, fstat(descriptor, &status) == 0 else { throw .system(path, errno) }
        return Int64(status.st_size)
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        path.lastIndex(of: "/").map { (String(path[...$0]), String(path[path.index(after: $0)...])) }
            ?? (".", path)
    }
}

/// Names beside the store's file.
package enum StorePath {
    /// What SQLite and this program keep beside the database, as endings of its name.
    static let companions = ["-wal", "-journal", "-shm", ".lock", ".control", ".restore"]

    /// The socket on which a worker takes requests about its store.
    package static func control(of store: String) -> String { store + ".control" }

    static func syncFolder(of path: String) throws(BackupError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(folder, errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .system(folder, errno) }
    }
}
