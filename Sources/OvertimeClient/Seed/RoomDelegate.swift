public import FoundationEssentials

extension Overtime {
    /// What a user in a room is told. Every notice may be left out.
    ///
    /// The notices of all rooms of a client come one after the other: return at once, and hand on what takes time.
    public protocol RoomDelegate: AnyObject, Sendable {
        /// A window is open: the session may be extended. `-room:didConferenceRemainingDuration:`
        func room(_ room: Room, didConferenceRemainingDuration data: RemainingDuration)
        /// The session goes on for longer. `-room:didConferencessExtended:`
        func room(_ room: Room, didConferenceExtended data: ExtendedDuration)
        /// The session was destroyed, as this moderator asked; nobody else gets it. `-room:didAckDestroy:`
        func room(_ room: Room, didAckDestroy data: DestroyAcknowledgement)
        /// The session is over; everybody gets it, and nothing after it. `-room:didRoomDisconnected:`
        func room(_ room: Room, didRoomDisconnected data: Disconnection)
    }

    /// How much time is left when a window is open.
    public struct RemainingDuration: Hashable, Sendable {
        /// Until the planned end, when it was announced; for who came later, when they joined.
        public let minutesLeft: Double
        /// 1 … n.
        public let window: Int
        /// Whether no further window opens before the end.
        public let isFinal: Bool
        /// False where a limit forbids an extension; nil, for who came later, where it is not known.
        public let isExtendable: Bool?
        /// The planned end.
        public let endsAt: Date
    }

    /// By how much a session goes on for longer.
    public struct ExtendedDuration: Hashable, Sendable {
        /// With up to four decimals.
        public let minutesGranted: Double
        /// Who asked.
        public let by: Extender
        /// The new planned end.
        public let endsAt: Date
        /// How often the session has been extended by now.
        public let extensions: Int
    }

    /// That the session was destroyed, as the moderator asked.
    public struct DestroyAcknowledgement: Hashable, Sendable {
        /// The moderator.
        public let by: String
    }

    /// That the session is over for everybody.
    public struct Disconnection: Hashable, Sendable {
        /// Nil where it is only known that the session is over: the event was missed.
        public let cause: EndCause?
        /// The moderator who ended it; nil where its time was up or an operator ended it.
        public let by: String?
        /// When; nil where that is not known.
        public let endedAt: Date?
    }
}

extension Overtime.RoomDelegate {
    public func room(_ room: Overtime.Room, didConferenceRemainingDuration data: Overtime.RemainingDuration) {
    }
    public func room(_ room: Overtime.Room, didConferenceExtended data: Overtime.ExtendedDuration) {}
    public func room(_ room: Overtime.Room, didAckDestroy data: Overtime.DestroyAcknowledgement) {}
    public func room(_ room: Overtime.Room, didRoomDisconnected data: Overtime.Disconnection) {}
}
