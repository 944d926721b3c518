import FoundationEssentials
import RoomCore

/// Hands the events of a client's rooms to their delegates, one at a time.
///
/// A room is known here before its user joins, so that nothing falls between: events of the meantime are kept until the reply
/// says which of them it already tells of.
actor RoomDesk {
    private struct Member {
        weak var room: Overtime.Room?
        weak var delegate: (any Overtime.RoomDelegate)?
        let user: UserID
        /// Its session; nil until the user has joined.
        var session: Int?
        /// Events up to this one are known.
        var sequence: Int64 = 0
        /// Came before the reply to the join.
        var early: [Overtime.Event] = []
        /// The window that was told last.
        var window: Window?
    }

    /// What a window is announced once for.
    private struct Window: Equatable {
        let session: Int
        let extensions: Int
        let number: Int
    }

    private var members: [RoomID: [ObjectIdentifier: Member]] = [:]
    private var start: Task<Result<Void, OvertimeError>, Never>?

    /// Listens to events, as long as there is the client; once.
    func listen(_ client: Overtime) async throws(OvertimeError) {
        let task = start ?? Task { await self.begin(client) }
        start = task
        let result = await task.value
        // Another may have begun anew meanwhile.
        if case .failure = result, start == task { start = nil }
        try result.get()
    }

    private func begin(_ client: Overtime) async -> Result<Void, OvertimeError> {
        do throws(OvertimeError) {
            let feed = try await client.listen(of: nil, from: .now, limit: client.timeout) { _ in }
            Task { [weak self, weak client] in
                while let notice = await feed.next() {
                    guard let self, let client else { return }
                    await self.take(notice, client)
                }
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    // MARK: Rooms

    func add(_ room: Overtime.Room, _ delegate: any Overtime.RoomDelegate) {
        members[RoomID(room.id), default: [:]][ObjectIdentifier(room)] = Member(
            room: room, delegate: delegate, user: UserID(room.user))
    }

    func remove(_ room: Overtime.Room) { remove(ObjectIdentifier(room), of: RoomID(room.id)) }

    /// The room as the reply to the join shows it, up to the event of that number.
    func joined(_ room: Overtime.Room, _ session: Overtime.Session?, _ sequence: Int64) {
        let (id, key) = (RoomID(room.id), ObjectIdentifier(room))
        guard var member = members[id]?[key], let session else { return }
        member.session = session.number
        member.sequence = sequence
        let early = member.early
        member.early = []
        members[id]?[key] = member
        tell(window: session, to: room)
        for event in early { take(event, key, of: id) }
    }

    private func remove(_ key: ObjectIdentifier, of room: RoomID) {
        members[room]?[key] = nil
        if members[room]?.isEmpty == true { members[room] = nil }
    }

    // MARK: Events

    private func take(_ notice: Overtime.Notice, _ client: Overtime) async {
        switch notice {
        case .event(let event):
            let id = RoomID(event.room)
            guard let keys = members[id]?.keys else { return }
            for key in Array(keys) { take(event, key, of: id) }
        case .gap(let gap):
            let rooms = gap.room.map { [RoomID($0)] } ?? Array(members.keys)
            for room in rooms { await lookAgain(room, client) }
        }
    }

    private func take(_ event: Overtime.Event, _ key: ObjectIdentifier, of id: RoomID) {
        guard var member = members[id]?[key] else { return }
        guard let room = member.room, let delegate = member.delegate else { return remove(key, of: id) }
        guard member.session != nil else {
            members[id]?[key]?.early.append(event)
            return
        }
        guard event.sequence > member.sequence else { return }
        member.sequence = event.sequence
        members[id]?[key] = member
        switch event.content {
        case .windowOpened(let opened):
            let window = Window(
                session: event.session ?? 0, extensions: opened.extensions, number: opened.window)
            guard member.window != window else { return }
            members[id]?[key]?.window = window
            delegate.room(
                room,
                didConferenceRemainingDuration: Overtime.RemainingDuration(
                    minutesLeft: opened.timeLeft.minutes, window: opened.window, isFinal: opened.isFinal,
                    isExtendable: opened.isExtendable, endsAt: opened.endsAt))
        case .sessionExtended(let extended):
            delegate.room(
                room,
                didConferenceExtended: Overtime.ExtendedDuration(
                    minutesGranted: extended.extendedTime.minutes, by: extended.by, endsAt: extended.endsAt,
                    extensions: extended.extensions))
        case .destroyAcknowledged(let moderator):
            guard case .user(let user) = event.audience, UserID(user) == member.user else { return }
            delegate.room(room, didAckDestroy: Overtime.DestroyAcknowledgement(by: moderator))
        case .sessionEnded(let ended):
            remove(key, of: id)
            delegate.room(
                room,
                didRoomDisconnected: Overtime.Disconnection(
                    cause: ended.cause, by: ended.by, endedAt: ended.endedAt))
        default: break
        }
    }

    // MARK: What events have not told

    private func tell(window session: Overtime.Session, to room: Overtime.Room) {
        guard let number = session.window, let left = session.timeLeft, let endsAt = session.endsAt else {
            return
        }
        let window = Window(session: session.number, extensions: session.extensions, number: number)
        let (id, key) = (RoomID(room.id), ObjectIdentifier(room))
        guard let member = members[id]?[key], member.window != window else { return }
        members[id]?[key]?.window = window
        member.delegate?.room(
            room,
            didConferenceRemainingDuration: Overtime.RemainingDuration(
                minutesLeft: left.minutes, window: number, isFinal: session.nextWindowAt == nil,
                isExtendable: nil, endsAt: endsAt))
    }

    /// After a gap the room itself says how it is; where it cannot be asked, the next events will.
    private func lookAgain(_ id: RoomID, _ client: Overtime) async {
        let reply: Overtime.Reply<Void>
        do throws(OvertimeError) { reply = try await client.status(id.text) } catch { return }
        for (key, member) in members[id] ?? [:] {
            // A reply from before the join says nothing.
            guard let room = member.room, let known = member.session, reply.sequence ?? 0 >= member.sequence
            else {
                continue
            }
            if let session = reply.session, session.number == known, session.state != .ended {
                tell(window: session, to: room)
                continue
            }
            remove(key, of: id)
            let ended = reply.session.flatMap { $0.number == known ? $0 : nil }
            member.delegate?.room(
                room,
                didRoomDisconnected: Overtime.Disconnection(
                    cause: ended?.cause, by: nil, endedAt: ended?.endedAt))
        }
    }
}

extension Duration {
    /// With fractions, as the wire has them.
    fileprivate var minutes: Double { Double(TimeSpan(self).milliseconds) / 60_000 }
}
