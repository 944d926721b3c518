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
        /// When it happened, by the worker's clock, to the millisecond.
        public let time: Date
        /// Whom a gateway should tell.
        public let audience: Audience
        /// What happened, typed.
        public let content: Content
        /// The type's name on the wire, such as `session.extended`.
        public let type: String
        /// Where it stands in the log of events; nil where it did not come from there. What a program keeps to go on after it
        /// when it starts again (``Start/after(_:seen:)``).
        public let position: Int64?
        /// The event as it was published: one CloudEvent.
        public let json: String
    }

    /// Whom an event is for.
    public enum Audience: Hashable, Sendable {
        /// Every connected user.
        case room
        /// One user alone, such as the moderator of an acknowledgement.
        case user(String)
        /// One that this version does not know: better nobody.
        case other
    }

    /// What happened. The names in brackets are those of the SDK that the feature is known from.
    public enum Content: Hashable, Sendable {
        /// The room was opened, opened again or given another definition.
        case roomOpened(RoomOpened)
        /// The clock runs: mostly at the first join.
        case sessionStarted(SessionStarted)
        /// A user came.
        case participantJoined(Presence)
        /// A user went; not sent for those whom a session's end disconnects.
        case participantLeft(Presence)
        /// A connected user is something else now.
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

    /// A room's definition. The wire has its durations in minutes with four decimals, so they may be off by up to three milliseconds:
    /// to open the room once more, use what it was opened with.
    public struct RoomOpened: Hashable, Sendable {
        /// The planned length of its sessions.
        public let duration: Duration
        /// Complete: nothing in it is left to a default.
        public let policy: Policy
        /// Nil where none were given.
        public let moderators: [String]?
    }

    /// When a session began, and when it is planned to end.
    public struct SessionStarted: Hashable, Sendable {
        /// The instant that the duration counts from.
        public let startedAt: Date
        /// The planned end.
        public let endsAt: Date
        /// From the start to the planned end, to within three milliseconds.
        public let duration: Duration
        /// The opening of the next window, or the end.
        public let nextDueAt: Date
    }

    /// Who came, went or is something else now.
    public struct Presence: Hashable, Sendable {
        /// Who it is about.
        public let user: String
        /// What they are now, or were when they left.
        public let role: Role
        /// How many are connected by now.
        public let connected: Int
    }

    /// A window in which the session may be extended.
    public struct WindowOpened: Hashable, Sendable {
        /// What was left when it was announced, to within three milliseconds.
        public let timeLeft: Duration
        /// 1 … n.
        public let window: Int
        /// Whether no further window opens before the end.
        public let isFinal: Bool
        /// False where a limit forbids an extension.
        public let isExtendable: Bool
        /// How often the session had been extended.
        public let extensions: Int
        /// The planned end.
        public let endsAt: Date
        /// The opening of the next window, or the end.
        public let nextDueAt: Date
        /// When it opened: or when the session began, where that was later.
        public let dueAt: Date
        /// How long after `dueAt` it was announced.
        public let lateBy: Duration
    }

    /// By how much a session was extended, by whom, and what follows from it.
    public struct SessionExtended: Hashable, Sendable {
        /// How much time was granted, to within three milliseconds.
        public let extendedTime: Duration
        /// Who asked.
        public let by: Extender
        /// The end that was planned before.
        public let previousEndsAt: Date
        /// The new planned end.
        public let endsAt: Date
        /// The opening of the next window, or the end.
        public let nextDueAt: Date
        /// How often the session has been extended by now.
        public let extensions: Int
    }

    /// Who extended a session.
    public enum Extender: Hashable, Sendable {
        /// A user in the room.
        case user(String)
        /// A backend, by the name of its user at the broker.
        case `operator`(String)
    }

    /// How a session ended.
    public struct SessionEnded: Hashable, Sendable {
        /// Why it ended.
        public let cause: EndCause
        /// The moderator who ended it; nil where its time was up or an operator ended it.
        public let by: String?
        /// Nil, as `endsAt`, for a session that still waited for a moderator.
        public let startedAt: Date?
        /// When it was planned to end.
        public let endsAt: Date?
        /// When it ended.
        public let endedAt: Date
        /// How long after `endsAt` it was ended, where its time was up; else zero.
        public let lateBy: Duration
        /// How often it had been extended.
        public let extensions: Int
        /// How many users were disconnected.
        public let participants: Int
    }
}
