import RoomCore
import Store
import Testing

@Test func aRunningRoomComesBackAsItWasWritten() throws {
    let folder = try TemporaryFolder()
    let store = try SQLiteStore(path: folder.file(), startedAt: .noon)
    let room = Room.running("demo")
    let positions = try store.commit(
        BatchCommit(
            rooms: [RoomWrite(room: room, expectedVersion: 0, isChanged: true)],
            participants: [
                ParticipantWrite(
                    room: "demo", session: 1,
                    change: .connected(Participant(user: "ann", role: .moderator, joinedAt: .noon)))
            ],
            answers: [answer("demo", "c-1", session: 1)], outbox: [draft("demo", 1), draft("demo", 2)]))
    #expect(positions == [1, 2])
    store.close()
    let again = try SQLiteStore(path: folder.file(), startedAt: .noon)
    #expect(try again.stored("demo") == StoredRoom(room: room, version: 1))
    #expect(try again.unpublished(after: 0, limit: 10).map(\.draft) == [draft("demo", 1), draft("demo", 2)])
    #expect(try again.liveRooms(after: nil, limit: 10) == [room])
    #expect(try again.participants(of: "demo", session: 1, after: nil, limit: 10).map(\.user) == ["ann"])
    #expect(try again.overdue(at: .noon(plus: 50), after: nil, limit: 10).map(\.room) == ["demo"])
    #expect(try again.statistics().liveRooms == 1)
    try again.check()
    try again.verifyIdentity()
}
