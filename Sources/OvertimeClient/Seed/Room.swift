extension Overtime {
    /// A user in a room: the two calls of the SDK that the feature is known from, and its notices by a delegate.
    ///
    /// | there | here |
    /// | --- | --- |
    /// | `[room extendConferenceDuration]` | ``extendConferenceDuration()`` |
    /// | `[room destroy]` | ``destroy()`` |
    /// | `room:didConferenceRemainingDuration:` | ``RoomDelegate/room(_:didConferenceRemainingDuration:)`` |
    /// | `room:didConferencessExtended:` | ``RoomDelegate/room(_:didConferenceExtended:)`` |
    /// | `room:didAckDestroy:` | ``RoomDelegate/room(_:didAckDestroy:)`` |
    /// | `room:didRoomDisconnected:` | ``RoomDelegate/room(_:didRoomDisconnected:)`` |
    /// | error 5116 | ``OvertimeError/refused(_:)`` with ``Refusal/Reason/unauthorized`` |
    ///
    /// The rooms of a client share one sequence of events. Notices end when nobody keeps the room any more, and when it is left or
    /// over.
    public final class Room: Sendable {
        /// The room's name.
        public let id: String
        /// Whom the calls and notices are for.
        public let user: String
        private let client: Overtime

        init(id: String, user: String, client: Overtime) {
            self.id = id
            self.user = user
            self.client = client
        }

        /// Asks for more time: as much as the room's policy gives where nothing else is asked for.
        ///
        /// - Throws: `refused` as `windowNotOpen` before a window opens, as `alreadyExtended` where somebody was quicker.
        @discardableResult
        public func extendConferenceDuration() async throws(OvertimeError) -> Reply<Extended> {
            try await client.extend(id, user: user)
        }

        /// Ends the session for everybody.
        ///
        /// - Throws: `refused` as `unauthorized`, 5116, for a user who is not a moderator.
        public func destroy() async throws(OvertimeError) {
            try await client.destroy(id, user: user)
        }

        /// Leaves the room. There is no notice of it, and none after it, also where the worker refuses because the session is over.
        public func leave() async throws(OvertimeError) {
            await client.desk.remove(self)
            try await client.leave(id, user: user)
        }
    }

    /// Joins a room and tells the delegate what happens there from then on, for as long as the room is kept; of a window that is
    /// already open, at once.
    ///
    /// - Parameters:
    ///   - room: which has to have been opened.
    ///   - user: who joins.
    ///   - role: what is asked for; nil for `participant`.
    ///   - delegate: held weakly.
    ///   - key: of the join; see there.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: as `join` and `events`. After `noReply` and `cancelled` the user may be in the room all the same.
    public func enter(
        _ room: String, user: String, role: Role? = nil, delegate: any RoomDelegate, key: String = newKey(),
        timeout: Duration? = nil
    ) async throws(OvertimeError) -> Room {
        try await desk.listen(self)
        let entered = Room(id: room, user: user, client: self)
        await desk.add(entered, delegate)
        do throws(OvertimeError) {
            let reply = try await join(room, user: user, role: role, key: key, timeout: timeout)
            await desk.joined(entered, reply.session, reply.sequence ?? 0)
        } catch {
            await desk.remove(entered)
            throw error
        }
        return entered
    }
}
