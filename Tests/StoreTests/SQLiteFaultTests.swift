import FoundationEssentials
import Glibc
import RoomCore
import Testing

@testable import Store

@Suite("a store in trouble")
struct SQLiteFaultTests {
    @Test("refuses to write into a file that was moved away, and goes on once it is back")
    func movedAway() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a"))
        try #require(rename(folder.file(), folder.file("elsewhere.db")) == 0)
        let error = StoreError.replaced(path: store.path)
        #expect(throws: error) { try store.verifyIdentity() }
        #expect(throws: error) { try store.check() }
        #expect(throws: error) { try store.put(.running("b")) }
        #expect(access(folder.file(), F_OK) != 0)
        try #require(rename(folder.file("elsewhere.db"), folder.file()) == 0)
        try store.verifyIdentity()
        try store.put(.running("b"))
        #expect(try store.stored("a").version == 1)
    }

    @Test("saves what the log held when somebody removes it")
    func removedJournal() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a"))
        try #require(unlink(folder.file("rooms.db-wal")) == 0)
        try store.put(.running("b"))
        // As after a kill: copies of the files as they are now. The original stays open.
        for name in ["rooms.db", "rooms.db-wal"] {
            try FileManager.default.copyItem(atPath: folder.file(name), toPath: folder.file("copy-" + name))
        }
        let copy = try SQLiteStore(path: folder.file("copy-rooms.db"), startedAt: .noon)
        #expect(try copy.liveRooms(after: nil, limit: 9).map(\.id) == ["a", "b"])
    }

    @Test("stops at a full disk, keeps what it has and goes on when there is space")
    func fullDatabase() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a"))
        func limit(_ pages: Int64) throws {
            _ = try store.reading { link throws(StoreError) in
                try link.connection.integer("PRAGMA max_page_count = \(pages)")
            }
        }
        try limit(1)
        let big = BatchCommit(
            rooms: [RoomWrite(room: .running("b"), expectedVersion: 0, isChanged: true)],
            outbox: [draft("b", 1, body: [UInt8](repeating: 7, count: 200_000))])
        let error = #expect(throws: StoreError.self) { try store.commit(big) }
        #expect(error == .full(path: store.path) && error?.isTransient == true)
        #expect(try store.stored("a").version == 1)
        #expect(try store.stored("b").version == 0)
        try limit(1_000_000)
        _ = try store.commit(big)
        #expect(try store.stored("b").room == .running("b"))
    }

    @Test("survives a full file system without a restart", .enabled(if: getuid() == 0, "mounting needs root"))
    func fullFileSystem() throws {
        let folder = try TemporaryFolder()
        let mountPoint = folder.file("small")
        try #require(mkdir(mountPoint, 0o700) == 0)
        guard mount("tmpfs", mountPoint, "tmpfs", 0, "size=768k") == 0 else {
            return Test.note("mounting a tmpfs is not allowed here")
        }
        defer { umount2(mountPoint, Int32(MNT_DETACH)) }
        let store = try SQLiteStore(path: mountPoint + "/rooms.db", startedAt: .noon)
        var written: [RoomID] = []
        var failure: StoreError?
        for number in 0..<2_000 where failure == nil {
            let id = RoomID("room \(number)")
            do throws(StoreError) {
                _ = try store.commit(
                    BatchCommit(
                        rooms: [RoomWrite(room: .running(id), expectedVersion: 0, isChanged: true)],
                        outbox: [draft(id, 1, body: [UInt8](repeating: 7, count: 3_000))]))
                written.append(id)
            } catch {
                failure = error
            }
        }
        #expect(failure?.isTransient == true, "\(String(describing: failure))")
        #expect(throws: StoreError.self) {
            for _ in 0..<50 {
                _ = try store.commit(
                    BatchCommit(outbox: [draft("x", 1, body: [UInt8](repeating: 7, count: 9_000))]))
            }
        }
        #expect(mount("tmpfs", mountPoint, "tmpfs", UInt(MS_REMOUNT), "size=64m") == 0)
        try store.check()
        try store.put(.running("after"))
        #expect(Set(try store.liveRooms(after: nil, limit: 9_999).map(\.id)) == Set(written + ["after"]))
        let state = try store.reading { link throws(StoreError) in
            try link.connection.text("PRAGMA integrity_check")
        }
        #expect(state == "ok")
        store.close()
    }

    @Test("opens its file anew after a failure that leaves doubt")
    func reopening() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        try store.put(.running("a"))
        let failure = StoreError.io(code: 10, "simulated")
        #expect(throws: failure) {
            try store.writing { link throws(StoreError) in
                _ = try store.write(.running("lost"), over: nil, link)
                throw failure
            }
        }
        #expect(try store.stored("a").room == .running("a"))
        #expect(try store.stored("lost").version == 0)
        try store.put(.running("b", minutes: 17))
        #expect(try store.stored("b").room == .running("b", minutes: 17))
        #expect(throws: failure) { try store.reading { _ throws(StoreError) in throw failure } }
        try #require(rename(folder.file(), folder.file("elsewhere.db")) == 0)
        // Taken away while it was closed: it is not made anew.
        #expect(throws: StoreError.self) { try store.check() }
        #expect(access(folder.file(), F_OK) != 0)
        try #require(rename(folder.file("elsewhere.db"), folder.file()) == 0)
        try store.check()
    }

    @Test("names the room whose rows make no sense, and serves the others")
    func corruptRoom() throws {
        let folder = try TemporaryFolder()
        var store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        for id in ["a", "b", "c", "d", "e"] as [RoomID] { try store.put(.running(id)) }
        store.close()
        try ForeignConnection(folder.file()).run(
            """
            UPDATE rooms SET announced = 7 WHERE id = 'a';
            UPDATE rooms SET started_at = 9000000000000000000 WHERE id = 'b';
            UPDATE rooms SET definition = 99 WHERE id = 'c';
            INSERT INTO definitions (id, digest, uses, text) VALUES (55, 1, 1, '{"duration":1}');
            UPDATE rooms SET session_definition = 55 WHERE id = 'd';
            """)
        var defects: [RoomID] = []
        store = try SQLiteStore(path: folder.file(), startedAt: .noon) { error in
            if case .corruptRoom(let room, _) = error { defects.append(room) }
        }
        for id in ["a", "b", "c", "d"] as [RoomID] {
            let error = #expect(throws: StoreError.self) { try store.stored(id) }
            guard case .corruptRoom(id, _) = error else { return #expect(Bool(false), "\(id)") }
            #expect(error?.isBatchFault == true && error?.isTransient == false)
        }
        #expect(try store.liveRooms(after: nil, limit: 1).map(\.id) == ["e"])
        #expect(defects == ["a", "b", "c", "d"])
        try store.put(.running("e", sequence: 9))
    }

    @Test("uses each definition's text once and forgets it with its last user")
    func definitionUses() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        func uses() throws -> [Int64] {
            try store.reading { link throws(StoreError) in
                let row = try link.connection.statement("SELECT uses FROM definitions ORDER BY id")
                var found: [Int64] = []
                while try row.step() { found.append(row.integer(0)) }
                return found
            }
        }
        try store.put(.running("a"))
        try store.put(.running("b"))
        #expect(try uses() == [4])
        var room = Room.running("a")
        room.definition = .sample(minutes: 5)
        try store.put(room)
        #expect(try uses() == [3, 1])
        try store.put(room)
        try store.put(.running("a"))
        #expect(try uses() == [4])
        for id in ["a", "b"] as [RoomID] { try store.put(Room.running(id).ended(at: .noon)) }
        _ = try store.prune(Retention(now: .latest, idsFor: .zero, roomsFor: .zero), limit: 9)
        #expect(try uses().isEmpty)
    }

    @Test("tells in one line what is wrong and what to do")
    func descriptions() {
        let errors: [StoreError] = [
            .conflict(["a"]), .busy(path: "p"), .full(path: "p"), .io(code: 10, "t"), .corrupt("t"),
            .corruptRoom("a", "t"), .readOnly(path: "p"), .notWritable(path: "p"),
            .cannotOpen(path: "p", errno: ENOENT), .newerSchema(found: 2, known: 1),
            .heldByAnother(pid: nil, host: nil, path: "p"), .notADatabase(path: "p", "t"),
            .replaced(path: "p"), .settingRefused("t"), .refused("t"), .closed,
        ]
        for error in errors {
            #expect(!error.description.contains("\n") && error.description.count > 10)
            #expect(!(error.isTransient && error.isBatchFault))
        }
    }
}

extension Test {
    /// Says why a test ended early, visibly.
    static func note(_ text: String) { print("note: \(text)") }
}
