import Contract
import RoomCore

extension Overtime {
    /// A room's whole definition, for `open`: what is left out takes the worker's default.
    public struct Definition: Hashable, Sendable {
        /// The planned length of a session: more than nothing, at most 366 days. Rounded to milliseconds, as all durations here.
        public var duration: Duration?
        /// Who is a moderator, whatever role is asked for; nobody else is then. Nil leaves it to each join.
        public var moderators: [String]?
        /// The rules of its sessions; nil for the defaults.
        public var policy: Policy?

        /// A definition of which everything may be left out.
        public init(duration: Duration? = nil, moderators: [String]? = nil, policy: Policy? = nil) {
            self.duration = duration
            self.moderators = moderators
            self.policy = policy
        }
    }

    /// The rules of a room's sessions: what is left out takes its default.
    public struct Policy: Hashable, Sendable {
        /// How long before the end windows open: one to eight different spans, longest first. Default: 10 and 5 minutes.
        public var windows: [Duration]?
        /// How much time one extension gives.
        public var `extension`: Extension?
        /// Default: anyone.
        public var extenders: Extenders?
        /// How often a session may be extended: 0 for never, nil for no limit.
        public var maxExtensions: Int?
        /// The longest time from a session's start to its end, at least its duration; nil for no limit.
        public var maxTotal: Duration?
        /// What starts a session. Default: the first join.
        public var clock: Clock?
        /// What may follow an ended session. Default: only another `open`.
        public var reopen: Reopening?

        /// A policy of which everything may be left out.
        public init(
            windows: [Duration]? = nil, extension: Extension? = nil, extenders: Extenders? = nil,
            maxExtensions: Int? = nil, maxTotal: Duration? = nil, clock: Clock? = nil,
            reopen: Reopening? = nil
        ) {
            self.windows = windows
            self.extension = `extension`
            self.extenders = extenders
            self.maxExtensions = maxExtensions
            self.maxTotal = maxTotal
            self.clock = clock
            self.reopen = reopen
        }

        /// How much time one extension gives.
        public struct Extension: Hashable, Sendable {
            /// At least the longest window. Default: 10 minutes, or the longest window where that is longer.
            public var min: Duration?
            /// Default: 30 minutes, or `min` where that is longer.
            public var max: Duration?
            /// What is given where nothing is asked for. Default: `min`.
            public var `default`: Duration?

            /// Bounds of which each may be left out.
            public init(min: Duration? = nil, max: Duration? = nil, default: Duration? = nil) {
                self.min = min
                self.max = max
                self.default = `default`
            }
        }

        /// Who may extend a session.
        public enum Extenders: String, Hashable, Sendable, CaseIterable {
            /// Any connected user.
            case anyone
            /// Moderators only.
            case moderators
        }

        /// What starts a session.
        public enum Clock: String, Hashable, Sendable, CaseIterable {
            /// The first user who joins.
            case firstJoin = "first-join"
            /// The first moderator; who comes earlier waits.
            case firstModerator = "first-moderator"
            /// The opening of the room, with nobody in it.
            case open
        }

        /// What may follow an ended session.
        public enum Reopening: String, Hashable, Sendable, CaseIterable {
            /// Only another `open`: who reconnects by themselves does not bring a closed room back.
            case command
            /// A join as well.
            case join
        }
    }
}

// MARK: To the wire

extension OpenRequest {
    init(_ definition: Overtime.Definition) {
        self.init(
            duration: definition.duration.map(TimeSpan.init),
            moderators: definition.moderators?.map { UserID($0) },
            policy: definition.policy.map(PolicyRequest.init))
    }
}

extension PolicyRequest {
    fileprivate init(_ policy: Overtime.Policy) {
        self.init(
            windows: policy.windows?.map(TimeSpan.init),
            extension: policy.extension.map(ExtensionRequest.init),
            extenders: policy.extenders.flatMap { RoomCore.Extenders(rawValue: $0.rawValue) },
            maxExtensions: policy.maxExtensions.map(Int64.init), maxTotal: policy.maxTotal.map(TimeSpan.init),
            clock: policy.clock.flatMap { SessionClock(rawValue: $0.rawValue) },
            reopen: policy.reopen.flatMap { RoomCore.Reopening(rawValue: $0.rawValue) })
    }
}

extension ExtensionRequest {
    fileprivate init(_ bounds: Overtime.Policy.Extension) {
        self.init(
            min: bounds.min.map(TimeSpan.init), max: bounds.max.map(TimeSpan.init),
            default: bounds.default.map(TimeSpan.init))
    }
}

// MARK: From the wire

extension Overtime.Policy {
    /// As the event `room.opened` has it: complete, durations in minutes, null for no limit.
    init?(_ value: JSONValue) {
        guard let windows = value["windows"]?.array, let bounds = value["extension"],
            let extenders = value["extenders"]?.string.flatMap(Extenders.init(rawValue:)),
            let clock = value["clock"]?.string.flatMap(Clock.init(rawValue:)),
            let reopen = value["reopen"]?.string.flatMap(Reopening.init(rawValue:))
        else { return nil }
        self.init(
            windows: windows.compactMap(\.minutes),
            extension: Extension(
                min: bounds["min"]?.minutes, max: bounds["max"]?.minutes, default: bounds["default"]?.minutes),
            extenders: extenders, maxExtensions: value["maxExtensions"]?.int,
            maxTotal: value["maxTotal"]?.minutes, clock: clock, reopen: reopen)
    }
}
