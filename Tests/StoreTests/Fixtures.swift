import FoundationEssentials
import Glibc
import RoomCore
import Store
import Testing

/// A directory of its own, gone with the test.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template = Array(
            "\(FileManager.default.temporaryDirectory.path)/overtime-store-XXXXXX".utf8CString)
        path = try template.withUnsafeMutableBufferPointer { buffer in
            String(cString: try #require(buffer.baseAddress.flatMap { mkdtemp($0) }))
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String = "rooms.db") -> String { "\(path)/\(name)" }
}

extension Instant {
    /// Noon of an ordinary day.
    static let noon = Instant(milliseconds: 1_795_953_600_000)
    static func noon(plus minutes: Int64) -> Instant { noon + .minutes(minutes) }
}

extension Definition {
    static func sample(minutes: Int64 = 60, moderators: [UserID]? = nil) -> Definition {
        Definition(
            duration: .minutes(minutes), moderators: moderators,
            policy: Policy(
                windows: [.minutes(10), .minutes(5)],
                extension: ExtensionBounds(min: .minutes(10), max: .minutes(30), default: .minutes(10)),
                extenders: .anyone, maxExtensions: nil, maxTotal: nil, clock: .firstJoin, reopen: .command))
    }
}

extension Room {
    static func running(
        _ id: RoomID, session: Int64 = 1, start: Instant = .noon, minutes: Int64 = 60, connected: Int64 = 1,
        sequence: Int64 = 3
    ) -> Room {
        let definition = Definition.sample(minutes: minutes)
        return Room(
            id: id, definition: definition, sequence: sequence, sessionNumber: session, isOpen: true,
            session: Session(
                number: session, definition: definition,
                phase: .running(Run(startedAt: start, endsAt: start + .minutes(minutes))),
                connected: connected, changedAt: start))
    }

    func ended(at instant: Instant, isOpen: Bool = false) -> Room {
        var room = self
        room.sequence += 1
        room.isOpen = isOpen
        guard var session else { return room }
        session.phase = .ended(
            Ending(startedAt: .noon, endsAt: instant, endedAt: instant, cause: .elapsed, extensions: 0))
        session.connected = 0
        session.changedAt = instant
        room.session = session
        return room
    }
}

extension RoomStore {
    /// The room as it is stored now.
    func stored(_ id: RoomID) throws -> StoredRoom {
        try #require(try load(BatchRequest(rooms: [id])).rooms[id])
    }

    /// Nil where somebody else changed the rooms meanwhile.
    func commitUnlessConflict(_ batch: BatchCommit) throws(StoreError) -> [Int64]? {
        do {
            return try commit(batch)
        } catch {
            guard case .conflict = error else { throw error }
            return nil
        }
    }

    /// Writes rooms that are not there yet, in one commit.
    func putNew(_ rooms: [Room]) throws {
        _ = try commit(
            BatchCommit(rooms: rooms.map { RoomWrite(room: $0, expectedVersion: 0, isChanged: true) }))
    }

    /// Writes a room over whatever version it has.
    @discardableResult
    func put(_ room: Room, participants: [Participant] = []) throws -> [Int64] {
        let version = try stored(room.id).version
        return try commit(
            BatchCommit(
                rooms: [RoomWrite(room: room, expectedVersion: version, isChanged: true)],
                participants: participants.map {
                    ParticipantWrite(room: room.id, session: room.sessionNumber, change: .connected($0))
                }))
    }
}

func draft(
    _ room: RoomID, _ sequence: Int64, body: [UInt8] = [1, 2, 3], trace: String? = nil
) -> OutboxDraft {
    OutboxDraft(
        room: room, sequence: sequence, type: "session.started", messageID: "\(room):\(sequence)",
        timestamp: 1_795_953_600 + sequence, body: body, trace: trace)
}

func answer(
    _ room: RoomID, _ id: CommandID, session: Int64 = 0, at: Instant = .noon, reply: [UInt8] = [9]
) -> AnswerWrite {
    AnswerWrite(
        key: CommandKey(room: room, id: id), canonical: Array(id.text.utf8), reply: reply, session: session,
        at: at)
}
