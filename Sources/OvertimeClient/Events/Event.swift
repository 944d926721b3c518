public import FoundationEssentials

extension Overtime {
    /// Something that happened in a room.
    public struct Event: Hashable, Sendable {
        /// `<room>:<sequence>`, the same in every copy.
        public let id: String
        /// Rooms and users are told apart byte by byte, while Swift calls two spellings of "é" equal: compare `utf8` where
        /// that matters.
        public let room: String
        /// 1, 2, … within the room, over all of its sessions.
        public let sequence: Int64
        /// The number of the session it belongs to; nil for a room that was opened before its first.
        public let session: Int?
        public let time: Date
        /// Whom a gateway should tell.
        public let audience: Audience
        public let content: Content
        /// The type's name on the wire, such as `session.extended`.
        public let type: String
        /// Where it stands in the log of events; nil where it did not come from there. What a program keeps to go on after it
        /// when it starts again (``Start/after(_:seen:)``).
        public let position: Int64?
        /// The event as it was published: one CloudEvent.
        public let json: String
    }

    public enum Audience: Hashable, Sendable {
        /// Every connected user.
        case room
        case user(String)
    }

    /// What happened. The names in brackets are those of the SDK that the feature is known from.
    public enum Content: Hashable, Sendable {
        /// The room was opened, opened again or given another definition.
        case roomOpened(RoomOpened)
        case sessionStarted(SessionStarted)
        case participantJoined(Presence)
        case participantLeft(Presence)
        case participantRoleChanged(Presence)
        /// A window is open (`didConferenceRemainingDuration`).
        case windowOpened(WindowOpened)
        /// The session goes on for longer (`didConferencessExtended`).
        case sessionExtended(SessionExtended)
        /// For the moderator who ended the session (`didAckDestroy`).
        case destroyAcknowledged(by: String)
        /// The session is over and everybody disconnected (`didRoomDisconnected`).
        case sessionEnded(SessionEnded)
        /// One that this version does not know; `json` has it.
        case other
    }

    public struct RoomOpened: Hashable, Sendable {
        public let duration: Duration
        /// Complete: nothing in it is left to a default.
        public let policy: Policy
        /// Nil where none were given.
        public let moderators: [String]?
    }

    public struct SessionStarted: Hashable, Sendable {
        public let startedAt: Date
        public let endsAt: Date
        public let duration: Duration
        /// The opening of the next window, or the end.
        public let nextDueAt: Date
    }

    /// Who came, went or is something else now.
    public struct Presence: Hashable, Sendable {
        public let user: String
        public let role: Role
        /// How many are connected by now.
        public let connected: Int
    }

    public struct WindowOpened: Hashable, Sendable {
        /// What was left when it was announced, to within three milliseconds.
        public let timeLeft: Duration
        /// 1 … n.
        public let window: Int
        public let isFinal: Bool
        /// False where a limit forbids an extension.
        public let isExtendable: Bool
        /// How often the session had been extended.
        public let extensions: Int
        public let endsAt: Date
        /// The opening of the next window, or the end.
        public let nextDueAt: Date
        /// When it opened: or when the session began, where that was later.
        public let dueAt: Date
        /// How long after `dueAt` it was announced.
        public let lateBy: Duration
    }

    public struct SessionExtended: Hashable, Sendable {
        /// How much time was granted.
        public let extendedTime: Duration
        public let by: Extender
        public let previousEndsAt: Date
        public let endsAt: Date
        /// The opening of the next window, or the end.
        public let nextDueAt: Date
        /// How often the session has been extended by now.
        public let extensions: Int
    }

    public enum Extender: Hashable, Sendable {
        case user(String)
        /// A backend, by the name of its user at the broker.
        case `operator`(String)
    }

    public struct SessionEnded: Hashable, Sendable {
        public let cause: EndCause
        /// The moderator who ended it; nil where its time was up or an operator ended it.
        public let by: String?
        /// Nil, as `endsAt`, for a session that still waited for a moderator.
        public let startedAt: Date?
        /// When it was planned to end.
        public let endsAt: Date?
        public let endedAt: Date
        /// How long after `endsAt` it was ended, where its time was up; else zero.
        public let lateBy: Duration
        public let extensions: Int
        /// How many users were disconnected.
        public let participants: Int
    }
}
