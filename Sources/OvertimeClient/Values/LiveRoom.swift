import Contract
public import FoundationEssentials
import RoomCore

extension Overtime {
    /// A room with a waiting or running session.
    public struct LiveRoom: Hashable, Sendable {
        /// Its name.
        public let room: String
        /// The session's number.
        public let session: Int
        /// Waiting or running.
        public let state: Session.State
        /// Nil while waiting, as the two after it.
        public let startedAt: Date?
        /// The planned end.
        public let endsAt: Date?
        /// When the room next has something to say: a window, or the end. In the past where that is overdue.
        public let nextDueAt: Date?
        /// How many users are connected.
        public let connected: Int
        /// How often the session was extended.
        public let extensions: Int
        /// The number of the room's last event.
        public let sequence: Int64
        /// The same as one JSON object.
        public let json: String
    }

    /// Who is connected to a room.
    public struct Participant: Hashable, Sendable {
        /// Their name.
        public let user: String
        /// What they are in the room.
        public let role: Role
        /// When they joined; joining again while connected does not count.
        public let joinedAt: Date
    }

    /// Part of a long answer, in byte order of the names.
    public struct Page<Row: Sendable>: Sendable {
        /// At most as many as were asked for.
        public let rows: [Row]
        /// What to ask on after; nil on the last page.
        public let next: String?
        /// When it was asked, by the worker's clock.
        public let serverTime: Date
        /// The answer as it came: one JSON object.
        public let json: String
    }
}

extension Overtime.LiveRoom {
    init(_ room: Contract.LiveRoom) {
        self.init(
            room: room.room.text, session: Int(clamping: room.session),
            state: Overtime.Session.State(rawValue: room.state.rawValue) ?? .running,
            startedAt: room.startedAt.map(Date.init), endsAt: room.endsAt.map(Date.init),
            nextDueAt: room.nextDueAt.map(Date.init), connected: Int(clamping: room.connected),
            extensions: Int(clamping: room.extensions), sequence: room.sequence,
            json: String(decoding: room.encode(), as: UTF8.self))
    }
}

extension Overtime.Participant {
    init(_ participant: RoomCore.Participant) {
        self.init(
            user: participant.user.text, role: Overtime.Role(rawValue: participant.role.rawValue) ?? .viewer,
            joinedAt: Date(participant.joinedAt))
    }
}
