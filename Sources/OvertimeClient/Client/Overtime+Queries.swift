import AMQP
package import Contract
import FoundationEssentials
import RoomCore

/// Questions that change nothing, answered by any worker.
extension Overtime {
    /// The rooms with a waiting or running session.
    ///
    /// - Parameters:
    ///   - last: the `next` of the page before; nil for the first.
    ///   - limit: rooms on a page, 1 to 1,000.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `malformed` for a limit or a name that cannot be; else as a command.
    public func rooms(
        after last: String? = nil, limit: Int = 500, timeout: Duration? = nil
    ) async throws(OvertimeError) -> Page<LiveRoom> {
        try await page(.rooms(after: last.map { RoomID($0) }, limit: limit), timeout) { body in
            QueryReplyDecoder.rooms(body).map { page in
                (page.rows.map(LiveRoom.init), page.next?.text, page.serverTime)
            }
        }
    }

    /// Who is connected to the room's session.
    ///
    /// - Parameters:
    ///   - room: which has to have been opened.
    ///   - last: the `next` of the page before; nil for the first.
    ///   - limit: users on a page, 1 to 1,000.
    ///   - timeout: how long to wait for the answer; nil for the configuration's.
    /// - Throws: `refused` for a room that was never opened; else as `rooms`.
    public func participants(
        of room: String, after last: String? = nil, limit: Int = 500, timeout: Duration? = nil
    ) async throws(OvertimeError) -> Page<Participant> {
        let query = Query.participants(room: RoomID(room), after: last.map { UserID($0) }, limit: limit)
        return try await page(query, timeout) { body in
            QueryReplyDecoder.participants(body).map { page in
                (page.rows.map(Participant.init), page.next?.text, page.serverTime)
            }
        }
    }

    private func page<Row>(
        _ query: Query, _ timeout: Duration?,
        _ read: ([UInt8]) -> Result<([Row], String?, Instant), QueryReplyDecoder.Problem>
    ) async throws(OvertimeError) -> Page<Row> {
        // The worker's own decoder, so that what is wrong is said here.
        if case .failure(let wrong) = QueryDecoder.decode(QueryEncoder.encode(query)) {
            throw .malformed(wrong.detail)
        }
        let body = try await ask(query, timeout: timeout ?? self.timeout)
        let json = String(decoding: body, as: UTF8.self)
        switch read(body) {
        case .success(let (rows, next, serverTime)):
            return Page(rows: rows, next: next, serverTime: Date(serverTime), json: json)
        case .failure(.refused(let failure)):
            guard
                case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes)
            else { throw .unreadable }
            throw .refused(Refusal(failure, whole: whole, json: json))
        case .failure(.unreadable): throw .unreadable
        }
    }

    /// Asks any worker; gives the answer's body.
    package func ask(_ query: Query, timeout: Duration) async throws(OvertimeError) -> [UInt8] {
        try await caller.ask(
            Caller.Question(
                kind: .query, exchange: topology.queries, routingKey: .empty,
                body: QueryEncoder.encode(query),
                isPersistent: false),
            timeout: timeout)
    }
}
