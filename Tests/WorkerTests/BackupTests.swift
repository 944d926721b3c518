import Glibc
import RoomCore
import Service
import Store
import Testing

@testable import Worker

/// A store with its socket, its desk, and clients on threads of their own.
private final class BackupBench {
    let folder: TemporaryFolder
    let store: SQLiteStore
    let desk: BackupDesk
    private let logFile: LogFile
    let orders = Mailbox<BackupOrder>()
    let socket: ControlSocket
    private let answers = Mailbox<ControlClient.Answer>()

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(path: folder.path + "/rooms.db", startedAt: Instant(milliseconds: 1))
        logFile = LogFile(folder: folder)
        desk = BackupDesk(source: store, clock: SystemClock(), log: logFile.log)
        socket = try ControlSocket(store: store.path) { [orders] in orders.put($0) }
    }

    deinit { store.close() }

    func ask(_ name: String, replaces: Bool = false, milliseconds: Int64 = 10_000) throws {
        try WorkThread.detached(name: "client") { [answers, path = store.path, folder = folder.path] in
            answers.put(
                ControlClient.backUp(
                    store: path, to: folder + "/" + name, replaces: replaces, milliseconds: milliseconds))
        }
    }

    func takeOrder() throws -> BackupOrder {
        let order = try #require(orders.take(timeoutMilliseconds: 10_000).first)
        desk.take(order)
        return order
    }

    func answer() throws -> ControlClient.Answer {
        try #require(answers.take(timeoutMilliseconds: 10_000).first)
    }
}

@Suite("Backups on request", .timeLimit(.minutes(1)))
struct BackupTests {
    @Test("A client asks over the socket and is told size and instant")
    func whole() throws {
        let bench = try BackupBench()
        defer { bench.socket.stop() }
        var status = stat()
        #expect(stat(bench.store.path + ".control", &status) == 0 && status.st_mode & 0o777 == 0o600)
        let before = SystemClock().nowMilliseconds()
        try bench.ask("copy.db")
        _ = try bench.takeOrder()
        while bench.desk.isCopying { bench.desk.step() }
        guard case .outcome(.done(let bytes, let takenAt)) = try bench.answer() else {
            return #expect(Bool(false))
        }
        #expect(stat(bench.folder.path + "/copy.db", &status) == 0 && Int64(status.st_size) == bytes)
        #expect(takenAt >= before && takenAt <= SystemClock().nowMilliseconds())
    }

    @Test("Refusals reach the client, and the next request is served")
    func refused() throws {
        let bench = try BackupBench()
        defer { bench.socket.stop() }
        try bench.ask("rooms.db", replaces: true)
        _ = try bench.takeOrder()
        guard case .outcome(.refused(let reason)) = try bench.answer() else { return #expect(Bool(false)) }
        #expect(reason.contains("belongs to the store"))
        try bench.ask("none/copy.db")
        _ = try bench.takeOrder()
        guard case .outcome(.refused) = try bench.answer() else { return #expect(Bool(false)) }
        #expect(!bench.desk.isCopying)
    }

    @Test("A client that has no more time gives its backup up")
    func givenUp() throws {
        let bench = try BackupBench()
        defer { bench.socket.stop() }
        try bench.ask("copy.db", milliseconds: 50)
        let order = try bench.takeOrder()
        #expect(try bench.answer() == .noAnswer)
        let deadline = MonotonicClock.milliseconds() + 60_000
        while !order.isGivenUp, MonotonicClock.milliseconds() < deadline { _ = order.wait(milliseconds: 10) }
        bench.desk.step()
        #expect(!bench.desk.isCopying)
        #expect(access(bench.folder.path + "/copy.db.part", F_OK) != 0)
        #expect(access(bench.folder.path + "/copy.db", F_OK) != 0)
    }

    @Test("A worker that stops ends what is under way, and its socket is gone")
    func stopping() throws {
        let bench = try BackupBench()
        try bench.ask("copy.db")
        _ = try bench.takeOrder()
        bench.desk.stop()
        guard case .outcome(.refused(let reason)) = try bench.answer() else { return #expect(Bool(false)) }
        #expect(reason.contains("stopping"))
        bench.socket.stop()
        #expect(access(bench.store.path + ".control", F_OK) != 0)
        try bench.ask("copy.db")
        #expect(try bench.answer() == .nobody)
    }

    @Test("What a dead worker left in its place is no hindrance, however long the path")
    func longPath() throws {
        let folder = try TemporaryFolder()
        var path = folder.path
        for _ in 0..<3 {
            path += "/" + String(repeating: "d", count: 80)
            try #require(mkdir(path, 0o700) == 0)
        }
        let left = open(path + "/rooms.db.control", O_CREAT | O_WRONLY, 0o600)
        close(left)
        #expect(
            ControlClient.backUp(store: path + "/rooms.db", to: "/x", replaces: false, milliseconds: 100)
                == .nobody)
        let socket = try ControlSocket(store: path + "/rooms.db") { $0.end(.refused("heard")) }
        defer { socket.stop() }
        #expect(
            ControlClient.backUp(store: path + "/rooms.db", to: "/x", replaces: false, milliseconds: 5_000)
                == .outcome(.refused("heard")))
    }
}
