import Contract
public import FoundationEssentials
import RoomCore

extension Overtime {
    /// What the worker answered to a command that it carried out.
    public struct Reply<Result: Sendable>: Sendable {
        /// What the command gave.
        public let result: Result
        /// The room's latest session as the command left it; nil before the first.
        public let session: Session?
        /// The number of the room's last event; nil before the first.
        public let sequence: Int64?
        /// When the command was judged, by the worker's clock: the now of all figures here.
        public let serverTime: Date
        /// The command's idempotency key: the same call with it changes nothing and gets the same answer.
        public let key: String
        /// The answer as it came: one JSON object.
        public let json: String
    }

    /// What `join` gave.
    public struct Joined: Hashable, Sendable {
        /// The role that was given, which may be another than was asked for.
        public let role: Role
    }

    /// What `extend` gave.
    public struct Extended: Hashable, Sendable {
        /// How much time was granted, to within three milliseconds: the wire has it in minutes with four decimals.
        public let extendedTime: Duration
        /// The new end.
        public let endsAt: Date
        /// How often the session has been extended by now.
        public let extensions: Int
    }

    /// Why the worker did not carry out a command. Nothing was changed.
    public struct Refusal: Hashable, Sendable {
        /// What to branch on.
        public let reason: Reason
        /// The number of the reason, such as 5116.
        public let code: Int
        /// A sentence for people.
        public let message: String
        /// When the next window opens, for `windowNotOpen` and `alreadyExtended`; nil where there is none to come.
        public let opensAt: Date?
        /// Who extended the session before, for `alreadyExtended`; nil for an operator.
        public let extendedBy: String?
        /// The room's latest session; nil before the first and where the room is not known.
        public let session: Session?
        /// The number of the room's last event; nil where there is none.
        public let sequence: Int64?
        /// When the command was judged, by the worker's clock.
        public let serverTime: Date?
        /// The answer as it came: one JSON object.
        public let json: String

        /// A reason by its word on the wire. A newer worker may know more than those named here.
        public struct Reason: RawRepresentable, Hashable, Sendable {
            public let rawValue: String

            public init(rawValue: String) { self.rawValue = rawValue }

            /// 6008: not a valid command, or not a valid query.
            public static let invalidCommand = Reason(.invalidCommand)
            /// 6009: the key was used before with another command.
            public static let idReused = Reason(.idReused)
            /// 6002: never opened.
            public static let unknownRoom = Reason(.unknownRoom)
            /// 6007: the policy's parts do not fit together.
            public static let invalidPolicy = Reason(.invalidPolicy)
            /// 6010: a join after the session has ended, where the room must be opened again first.
            public static let sessionOver = Reason(.sessionOver)
            /// 6003: the room exists, no session runs.
            public static let noSession = Reason(.noSession)
            /// 6001: the user is not in the room.
            public static let notConnected = Reason(.notConnected)
            /// 5116: not allowed to this user, such as `destroy` to who is not a moderator.
            public static let unauthorized = Reason(.unauthorized)
            /// 6006: the policy's `maxExtensions` or `maxTotal` forbids it.
            public static let limitReached = Reason(.limitReached)
            /// 6005: somebody has extended the session, and the next window has not opened yet.
            public static let alreadyExtended = Reason(.alreadyExtended)
            /// 6004: the first window has not opened yet.
            public static let windowNotOpen = Reason(.windowNotOpen)

            private init(_ reason: RoomCore.Refusal.Reason) { self.init(rawValue: reason.rawValue) }
        }
    }
}

extension Overtime.Refusal: CustomStringConvertible {
    public var description: String { "\(code) \(reason.rawValue): \(message)" }
}

// MARK: From the wire

extension Overtime.Refusal {
    init(_ failure: Contract.Reply.Failure, whole: JSONValue, json: String) {
        self.init(
            reason: Reason(rawValue: failure.reason), code: Int(clamping: failure.code),
            message: failure.message,
            opensAt: whole["error"]?["opensAt"]?.date, extendedBy: whole["error"]?["extendedBy"]?.string,
            session: whole["session"].flatMap(Overtime.Session.init), sequence: whole["sequence"]?.integer,
            serverTime: whole["serverTime"]?.date, json: json)
    }
}

extension Overtime.Joined {
    init?(_ result: JSONValue) {
        guard let role = result["role"]?.string.flatMap(Overtime.Role.init(rawValue:)) else { return nil }
        self.init(role: role)
    }
}

extension Overtime.Extended {
    init?(_ result: JSONValue) {
        guard let time = result["extendedTime"]?.minutes, let endsAt = result["endsAt"]?.date,
            let extensions = result["extensions"]?.int
        else { return nil }
        self.init(extendedTime: time, endsAt: endsAt, extensions: extensions)
    }
}
