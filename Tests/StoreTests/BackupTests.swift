import Glibc
import RoomCore
import Testing

@testable import Store

/// Copies a store's every page in small steps, with `between` after each.
private func backUp(
    _ store: SQLiteStore, to path: String, replaces: Bool = false, pages: Int = 4,
    between: (Int) throws -> Void = { _ in }
) throws -> (bytes: Int64, steps: Int) {
    let file = try BackupFile(path, store: store.path, replaces: replaces)
    try store.beginBackup(to: file)
    var steps = 1
    while try !store.continueBackup(pages: pages) {
        try between(steps)
        steps += 1
    }
    return (try file.complete(), steps)
}

private func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
}

@Suite("backup and restore")
struct BackupTests {
    @Test("a copy holds everything that was committed up to its last step")
    func copyWhileWriting() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for number in 0..<300 { try store.put(.running(RoomID("room \(number)"))) }
        var written = 0
        let (bytes, steps) = try backUp(store, to: folder.file("copy.db"), pages: 1) { step in
            // Old pages are changed and new ones made, some before the copy gets there and some behind it.
            try store.put(.running(RoomID("room \(step * 7 % 300)"), sequence: Int64(100 + step)))
            try store.put(.running(RoomID("new \(step)")))
            written = step
        }
        #expect(steps > 10 && written == steps - 1)
        var status = stat()
        #expect(stat(folder.file("copy.db"), &status) == 0 && Int64(status.st_size) == bytes)
        #expect(status.st_mode & 0o777 == 0o600)
        for ending in ["-wal", "-shm", "-journal"] { #expect(!exists(folder.file("copy.db" + ending))) }
        #expect(!exists(folder.file("copy.db.part")))
        try store.check()
        let copy = try SQLiteStore(path: folder.file("copy.db"), startedAt: .noon)
        #expect(try copy.liveRooms(after: nil, limit: 10_000) == store.liveRooms(after: nil, limit: 10_000))
        #expect(try copy.statistics().liveRooms == 300 + written)
        #expect(try copy.stored(RoomID("new \(written)")).version == 1)
    }

    @Test("a transaction that was undone meanwhile is not in the copy")
    func copyWhileUndoing() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for number in 0..<200 { try store.put(.running(RoomID("room \(number)"))) }
        _ = try backUp(store, to: folder.file("copy.db"), pages: 16) { step in
            guard step == 2 else { return }
            #expect(throws: StoreError.self) {
                try store.writing { link throws(StoreError) in
                    try link.connection.execute("UPDATE rooms SET sequence = 77")
                    throw .refused("a test")
                }
            }
        }
        let copy = try SQLiteStore(path: folder.file("copy.db"), startedAt: .noon)
        #expect(try copy.liveRooms(after: nil, limit: 1_000).allSatisfy { $0.sequence == 3 })
    }

    @Test("a file that is there is kept, unless it is to be replaced")
    func existing() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        let path = folder.file("copy.db")
        _ = try backUp(store, to: path)
        #expect(throws: BackupError.exists(path: path)) { try backUp(store, to: path) }
        try store.put(.running("later"))
        _ = try backUp(store, to: path, replaces: true)
        #expect(try SQLiteStore(path: path, startedAt: .noon).stored("later").version == 1)
    }

    @Test("the store's own files are never a target, by whatever name")
    func ownFiles() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try #require(symlink(folder.file(), folder.file("link.db")) == 0)
        try #require(link(folder.file(), folder.file("hard.db")) == 0)
        let names = [
            "rooms.db", "rooms.db-wal", "rooms.db-shm", "rooms.db.lock", "rooms.db.control", "link.db",
            "hard.db",
            "../\(folder.path.split(separator: "/").last ?? "")/rooms.db",
        ]
        for name in names {
            let error = #expect(throws: BackupError.self, "\(name)") {
                try BackupFile(folder.file(name), store: store.path, replaces: true)
            }
            guard case .isStore = error else {
                return #expect(Bool(false), "\(name): \(String(describing: error))")
            }
        }
        for name in ["", "none/copy.db", "."] {
            #expect(throws: BackupError.self) {
                try BackupFile(folder.file(name), store: store.path, replaces: true)
            }
        }
        try store.check()
    }

    @Test("an abandoned or failed copy leaves the store working and no file behind")
    func abandoned() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for number in 0..<300 { try store.put(.running(RoomID("room \(number)"))) }
        let file = try BackupFile(folder.file("copy.db"), store: store.path, replaces: false)
        try store.beginBackup(to: file)
        #expect(try store.continueBackup(pages: 2) == false)
        #expect(throws: BackupError.self) { try store.beginBackup(to: file) }
        store.abandonBackup()
        file.discard()
        #expect(throws: BackupError.self) { try store.continueBackup(pages: 2) }
        try store.beginBackup(to: file)
        #expect(try store.continueBackup(pages: 2) == false)
        // The connection goes with the store, and the copy must not keep it, nor its locks, alive.
        store.close()
        file.discard()
        try SQLiteStore(path: folder.file(), startedAt: .noon).check()
        #expect(!exists(folder.file("copy.db")) && !exists(folder.file("copy.db.part")))
    }

    @Test("without a worker the file is copied directly, and not changed by it")
    func offline() throws {
        let folder = try TemporaryFolder()
        #expect(throws: BackupError.missing(path: folder.file())) {
            try OfflineStore.backUp(
                store: folder.file(), to: folder.file("copy.db"), replaces: false, startedAt: .noon)
        }
        #expect(!exists(folder.file()))
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("demo"))
        #expect(throws: BackupError.self) {
            try OfflineStore.backUp(
                store: folder.file(), to: folder.file("copy.db"), replaces: false, startedAt: .noon)
        }
        store.close()
        let bytes = try OfflineStore.backUp(
            store: folder.file(), to: folder.file("copy.db"), replaces: false, startedAt: .noon)
        #expect(bytes > 0)
        #expect(try SQLiteStore(path: folder.file("copy.db"), startedAt: .noon).stored("demo").version == 1)
        #expect(try SQLiteStore(path: folder.file(), startedAt: .noon).stored("demo").version == 1)
    }

    // MARK: Restoring

    @Test("a restored store goes on behind every number that was seen, with its outbox as it was")
    func restore() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        _ = try store.beginRun(RunRow(id: "run", pid: 1, host: "h", startedAt: .noon))
        try store.put(.running("a", sequence: 3))
        try store.put(Room.running("b", sequence: 8).ended(at: .noon(plus: 1)))
        _ = try store.commit(
            BatchCommit(answers: [answer("a", "k")], outbox: [draft("a", 2), draft("a", 3)]))
        _ = try backUp(store, to: folder.file("copy.db"))
        store.close()
        let restored = try Restore(
            store: folder.file("new.db"), from: folder.file("copy.db"), asideEnding: "before"
        ).run(replaces: false, startedAt: .noon)
        #expect(
            restored
                == Restore.Result(rooms: 2, keptRooms: 0, outbox: 2, aside: nil, comparedWithOld: true))
        let again = try SQLiteStore(path: folder.file("new.db"), startedAt: .noon)
        #expect(try again.stored("a").room.sequence == 1_000_003)
        #expect(try again.stored("b").room.sequence == 1_000_009)
        var expected = Room.running("a", sequence: 1_000_003)
        expected.session?.connected = 1
        #expect(try again.stored("a").room == expected)
        #expect(try again.unpublished(after: 0, limit: 9).map(\.draft) == [draft("a", 2), draft("a", 3)])
        let key = CommandKey(room: "a", id: "k")
        #expect(try again.load(BatchRequest(keys: [key])).answers[key] != nil)
        // The run that the backup cut off has not crashed.
        #expect(try again.beginRun(RunRow(id: "next", pid: 1, host: "h", startedAt: .noon)).isEmpty)
        for ending in [".restore", ".restore-wal", "-journal"] {
            #expect(!exists(folder.file("new.db" + ending)))
        }
    }

    @Test("a replaced store is put aside whole, and its higher numbers count")
    func replace() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a", sequence: 3))
        _ = try backUp(store, to: folder.file("copy.db"))
        try store.put(.running("a", sequence: 40))
        try store.put(.running("later", session: 2, sequence: 5))
        store.close()
        let restore = try Restore(store: folder.file(), from: folder.file("copy.db"), asideEnding: "before")
        #expect(throws: BackupError.exists(path: store.path)) {
            try restore.run(replaces: false, startedAt: .noon)
        }
        let first = try restore.run(replaces: true, startedAt: .noon)
        #expect(first.aside == store.path + ".before" && first.rooms == 1 && first.keptRooms == 1)
        #expect(
            try SQLiteStore(path: folder.file("rooms.db.before"), startedAt: .noon).stored("a").room.sequence
                == 40)
        // The same backup a second time must not give the numbers of the first one again.
        let second = try restore.run(replaces: true, startedAt: .noon)
        #expect(second.aside == store.path + ".before-2")
        let again = try SQLiteStore(path: folder.file(), startedAt: .noon)
        #expect(try again.stored("a").room.sequence == 2_000_040)
        let later = try again.stored("later").room
        #expect(later.sequence == 2_000_005 && later.sessionNumber == 2 && later.definition == nil)
    }

    @Test("a damaged store is put aside with its log, and said to be unread")
    func replaceDamaged() throws {
        let folder = try TemporaryFolder()
        try SQLiteStore(path: folder.file("good.db"), startedAt: .noon).close()
        _ = try OfflineStore.backUp(
            store: folder.file("good.db"), to: folder.file("copy.db"), replaces: false, startedAt: .noon)
        for name in ["rooms.db", "rooms.db-wal"] {
            let descriptor = open(folder.file(name), O_CREAT | O_WRONLY, 0o600)
            #expect(write(descriptor, String(repeating: "noise", count: 2_000), 10_000) == 10_000)
            close(descriptor)
        }
        let result = try Restore(store: folder.file(), from: folder.file("copy.db"), asideEnding: "before")
            .run(replaces: true, startedAt: .noon)
        #expect(!result.comparedWithOld)
        #expect(exists(folder.file("rooms.db.before")) && exists(folder.file("rooms.db.before-wal")))
        try SQLiteStore(path: folder.file(), startedAt: .noon).check()
    }

    @Test("what is no whole backup of this program is refused, and the store stays as it is")
    func refused() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for number in 0..<300 { try store.put(.running(RoomID("room \(number)"))) }
        _ = try backUp(store, to: folder.file("copy.db"))
        func attempt(_ name: String) throws {
            let error = #expect(throws: BackupError.self, "\(name)") {
                try Restore(store: folder.file(), from: folder.file(name), asideEnding: "before")
                    .run(replaces: true, startedAt: .noon)
            }
            #expect(error?.description.contains("\n") == false)
            #expect(!exists(folder.file("rooms.db.before")) && !exists(folder.file("rooms.db.restore")))
        }
        // Owned by a worker.
        try attempt("copy.db")
        store.close()
        try attempt("none.db")
        try attempt("rooms.db")
        try ForeignConnection(folder.file("theirs.db")).run("CREATE TABLE theirs (a)")
        try attempt("theirs.db")
        try ForeignConnection(folder.file("empty.db")).run("VACUUM")
        try attempt("empty.db")
        _ = try OfflineStore.backUp(
            store: folder.file(), to: folder.file("newer.db"), replaces: false, startedAt: .noon)
        try ForeignConnection(folder.file("newer.db")).run("PRAGMA user_version = 99")
        try attempt("newer.db")
        let descriptor = open(folder.file("copy.db"), O_RDWR)
        let noise = [UInt8](repeating: 0xA5, count: 600)
        for page in 2..<8 { #expect(pwrite(descriptor, noise, 600, off_t(page * 4_096)) == 600) }
        close(descriptor)
        try attempt("copy.db")
        #expect(try SQLiteStore(path: folder.file(), startedAt: .noon).statistics().liveRooms == 300)
    }
}
