package import RoomCore

/// An answer as a client reads it: the parts that programs branch on, and the whole for everything else.
package struct Reply: Equatable, Sendable {
    package struct Failure: Hashable, Sendable {
        package let code: Int64
        /// One of `Refusal.Reason`, or a word that a newer worker knows.
        package let reason: String
        package let message: String

        package init(code: Int64, reason: String, message: String) {
            self.code = code
            self.reason = reason
            self.message = message
        }
    }

    package let ok: Bool
    package let id: CommandID?
    package let command: CommandKind?
    package let room: RoomID?
    /// Nil exactly where `ok`.
    package let error: Failure?
    package let serverTime: Instant?
    package let whole: JSONValue
}

package enum ReplyDecoder {
    /// Nil for anything that is no answer of ours.
    package static func decode(_ body: [UInt8]) -> Reply? {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes),
            let ok = whole["ok"]?.bool
        else { return nil }
        let error = failure(whole)
        guard ok == (error == nil) else { return nil }
        return Reply(
            ok: ok, id: whole["id"]?.string.map(CommandID.init(_:)),
            command: whole["command"]?.string.flatMap(CommandKind.init(rawValue:)),
            room: whole["room"]?.string.map(RoomID.init(_:)), error: error,
            serverTime: whole["serverTime"]?.instant, whole: whole)
    }

    /// Shared with the answers to queries.
    static func failure(_ whole: JSONValue) -> Reply.Failure? {
        guard let error = whole["error"], let code = error["code"]?.integer,
            let reason = error["reason"]?.string, let message = error["message"]?.string
        else { return nil }
        return Reply.Failure(code: code, reason: reason, message: message)
    }
}
