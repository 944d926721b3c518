import Contract
public import FoundationEssentials

extension Overtime {
    /// A room's latest session, at the instant at which a command was judged.
    public struct Session: Hashable, Sendable {
        /// How far a session has come.
        public enum State: String, Hashable, Sendable, CaseIterable {
            /// For a moderator, with the clock `firstModerator`.
            case waiting
            /// Its time counts down.
            case running
            /// It is over.
            case ended
        }

        /// 1, 2, … within its room.
        public let number: Int
        /// How far it has come.
        public let state: State
        /// Nil while waiting, as the four after it.
        public let startedAt: Date?
        /// The planned end.
        public let endsAt: Date?
        /// To within three milliseconds: the wire has it in minutes with four decimals. Zero once ended.
        public let timeLeft: Duration?
        /// The open window, 1 … n; nil where none is.
        public let window: Int?
        /// When the next window opens; nil in the final one.
        public let nextWindowAt: Date?
        /// How often it was extended.
        public let extensions: Int
        /// How many users are connected.
        public let connected: Int
        /// Set once ended, with `cause`.
        public let endedAt: Date?
        /// Why it ended; set once it has.
        public let cause: EndCause?
    }

    /// Why a session ended.
    public enum EndCause: String, Hashable, Sendable, CaseIterable {
        /// Its time was up.
        case elapsed
        /// A moderator or an operator ended it.
        case destroyed
    }
}

extension Overtime.Session {
    init?(_ value: JSONValue) {
        guard let number = value["number"]?.int,
            let state = value["state"]?.string.flatMap(State.init(rawValue:)),
            let extensions = value["extensions"]?.int, let connected = value["connected"]?.int
        else { return nil }
        self.init(
            number: number, state: state, startedAt: value["startedAt"]?.date, endsAt: value["endsAt"]?.date,
            timeLeft: value["timeLeft"]?.minutes, window: value["window"]?.int,
            nextWindowAt: value["nextWindowAt"]?.date, extensions: extensions, connected: connected,
            endedAt: value["endedAt"]?.date,
            cause: value["cause"]?.string.flatMap(Overtime.EndCause.init(rawValue:)))
    }
}
