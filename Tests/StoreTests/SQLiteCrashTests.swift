import FoundationEssentials
import Glibc
import RoomCore
import Store
import Testing

@Suite("a worker that is killed")
struct SQLiteCrashTests {
    @Test("loses nothing that was reported as committed", arguments: 0..<6)
    func kill(round: Int) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try SQLiteStore(path: path, startedAt: .noon)
            let log = open(path + ".log", O_CREAT | O_APPEND | O_WRONLY, 0o600)
            _ = try store.beginRun(RunRow(id: "killed", pid: getpid(), host: "h", startedAt: .noon))
            // The kernel kills in the midst of whatever is being done.
            var delay = itimerval()
            delay.it_value.tv_usec = .random(in: 20_000...250_000)
            signal(SIGALRM) { _ in _ = Glibc.kill(getpid(), SIGKILL) }
            var number: Int64 = 0
            while true {
                // Not before something was reported, however slow the machine is.
                if number == 3 { setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &delay, nil) }
                number += 1
                let room = RoomID("room \(number % 7)")
                let version = try store.stored(room).version
                let positions = try store.commit(
                    BatchCommit(
                        rooms: [
                            RoomWrite(
                                room: .running(room, sequence: number), expectedVersion: version,
                                isChanged: true)
                        ],
                        answers: [answer(room, CommandID("\(number)"))], outbox: [draft(room, number)]))
                let line = "\(number) \(positions[0])\n"
                write(log, line, line.utf8.count)
            }
        }
        let store = try SQLiteStore(path: path, startedAt: .noon)
        let lines = try String(contentsOfFile: path + ".log", encoding: .utf8).split(separator: "\n")
        let reported = lines.map { $0.split(separator: " ").compactMap { Int64($0) } }
        try #require(reported.count > 2 && reported.allSatisfy { $0.count == 2 })
        let messages = try store.unpublished(after: 0, limit: .max)
        // At most the one commit that was not reported any more.
        #expect((reported.count...reported.count + 1).contains(messages.count))
        for (message, line) in zip(messages, reported) {
            #expect(message.draft.sequence == line[0] && message.position == line[1])
            let key = CommandKey(room: message.draft.room, id: CommandID("\(line[0])"))
            #expect(try store.load(BatchRequest(keys: [key])).answers[key] != nil)
        }
        for room in try store.liveRooms(after: nil, limit: 9) {
            #expect(messages.last { $0.draft.room == room.id }?.draft.sequence == room.sequence)
        }
        #expect(try store.beginRun(RunRow(id: "next", pid: 1, host: "h", startedAt: .noon)) == ["killed"])
    }

    @Test("is refused the file of a living one, and told who that is")
    func otherProcess() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
        let (path, owner) = (folder.file(), getpid())
        await #expect(processExitsWith: .success) { [path = path as String, owner = owner as pid_t] in
            let error = #expect(throws: StoreError.self) { try SQLiteStore(path: path, startedAt: .noon) }
            guard case .heldByAnother(owner, _?, _) = error, getpid() != owner else { exit(3) }
            exit(0)
        }
        try store.check()
    }
}
