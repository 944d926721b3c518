import AMQP
import Contract
import FoundationEssentials
package import RoomCore

/// The commands. Each throws `refused` where the worker decided against it, and what `OvertimeError` says where there is no
/// decision.
/// Cancelling the task ends the wait and not the command.
extension Overtime {
    /// Defines the room, and opens it again after an end.
    ///
    /// The same definition again changes nothing. During a session it counts for the next one.
    ///
    /// - Parameters:
    ///   - room: 1 to 128 bytes, no control characters.
    ///   - definition: what is left out takes the worker's default.
    ///   - key: the command's idempotency key: give your own where the call may have to be repeated after a crash of this program.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` where the worker decided against it; else see `OvertimeError`.
    @discardableResult
    public func open(
        _ room: String, _ definition: Definition = Definition(), key: String = newKey(),
        timeout: Duration? = nil
    ) async throws(OvertimeError) -> Reply<Void> {
        try await command(room, nil, .open(OpenRequest(definition)), key, timeout) { _ in () }
    }

    /// Connects a user; the first join starts the session, where the policy does not say otherwise.
    ///
    /// Again while connected it changes nothing but the role.
    ///
    /// - Parameters:
    ///   - room: which has to have been opened.
    ///   - user: 1 to 128 bytes, no control characters.
    ///   - role: what is asked for, `participant` where nothing is; a room with a list of moderators goes by that.
    ///   - key: the command's idempotency key: give your own where the call may have to be repeated after a crash of this program.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` where the worker decided against it; else see `OvertimeError`.
    @discardableResult
    public func join(
        _ room: String, user: String, role: Role? = nil, key: String = newKey(), timeout: Duration? = nil
    ) async throws(OvertimeError) -> Reply<Joined> {
        let role = role.flatMap { RoomCore.Role(rawValue: $0.rawValue) }
        return try await command(room, user, .join(role: role), key, timeout, Joined.init)
    }

    /// Disconnects a user. The clock goes on, also when the room is empty.
    ///
    /// - Parameters:
    ///   - room: where the user is.
    ///   - user: who leaves.
    ///   - key: the command's idempotency key: give your own where the call may have to be repeated after a crash of this program.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` where the worker decided against it; else see `OvertimeError`.
    @discardableResult
    public func leave(
        _ room: String, user: String, key: String = newKey(), timeout: Duration? = nil
    ) async throws(OvertimeError) -> Reply<Void> {
        try await command(room, user, .leave, key, timeout) { _ in () }
    }

    /// Asks for more time, which is granted once in each window, to whoever is first.
    ///
    /// - Parameters:
    ///   - room: whose session is to go on for longer.
    ///   - user: who asks; nil for an operator, whom the worker knows by this connection's user.
    ///   - by: how much, held within the policy's bounds; nil for the policy's default.
    ///   - key: the command's idempotency key: give your own where the call may have to be repeated after a crash of this program.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` where the worker decided against it; else see `OvertimeError`.
    @discardableResult
    public func extend(
        _ room: String, user: String?, by: Duration? = nil, key: String = newKey(), timeout: Duration? = nil
    ) async throws(OvertimeError) -> Reply<Extended> {
        try await command(room, user, .extend(by: by.map(TimeSpan.init)), key, timeout, Extended.init)
    }

    /// Ends the session for everybody. Only a moderator may; others are refused with 5116.
    ///
    /// - Parameters:
    ///   - room: whose session is to end.
    ///   - user: who asks; nil for an operator, whom the worker knows by this connection's user.
    ///   - key: the command's idempotency key: give your own where the call may have to be repeated after a crash of this program.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` where the worker decided against it; else see `OvertimeError`.
    @discardableResult
    public func destroy(
        _ room: String, user: String?, key: String = newKey(), timeout: Duration? = nil
    ) async throws(OvertimeError) -> Reply<Void> {
        try await command(room, user, .destroy, key, timeout) { _ in () }
    }

    /// Asks for the room's session and changes nothing.
    ///
    /// - Parameters:
    ///   - room: which has to have been opened.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` where the worker decided against it; else see `OvertimeError`.
    public func status(_ room: String, timeout: Duration? = nil) async throws(OvertimeError) -> Reply<Void> {
        try await command(room, nil, .status, Self.newKey(), timeout) { _ in () }
    }

    private func command<Result>(
        _ room: String, _ user: String?, _ action: Command.Action, _ key: String, _ timeout: Duration?,
        _ result: (JSONValue) -> Result?
    ) async throws(OvertimeError) -> Reply<Result> {
        let command = Command(
            room: RoomID(room), user: user.map { UserID($0) }, id: CommandID(key), action: action)
        // The worker's own decoder, so that what is wrong is said here and no dead letter is made of it.
        if case .failure(let wrong) = CommandDecoder.decode(
            body: CommandEncoder.encode(command), properties: Properties())
        {
            throw .malformed(wrong.detail)
        }
        let body = try await send(command, timeout: timeout ?? self.timeout)
        guard let reply = ReplyDecoder.decode(body), let serverTime = reply.serverTime else {
            throw .unreadable
        }
        let json = String(decoding: body, as: UTF8.self)
        if let failure = reply.error { throw .refused(Refusal(failure, whole: reply.whole, json: json)) }
        guard let result = reply.whole["result"].flatMap(result) else { throw .unreadable }
        return Reply(
            result: result, session: reply.whole["session"].flatMap(Session.init),
            sequence: reply.whole["sequence"]?.integer, serverTime: Date(serverTime), key: key, json: json)
    }

    /// Publishes a command; gives the reply's body, or nothing where none is waited for and the broker has the command.
    package func send(
        _ command: Command, waitsForReply: Bool = true, timeout: Duration
    ) async throws(OvertimeError) -> [UInt8] {
        try await caller.ask(
            Caller.Question(
                kind: .command, exchange: topology.commandsExchange,
                routingKey: ShortString(command.room.text) ?? .empty,
                body: CommandEncoder.encode(command), isPersistent: true, waitsForReply: waitsForReply),
            timeout: timeout)
    }
}
