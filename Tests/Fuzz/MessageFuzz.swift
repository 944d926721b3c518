import AMQP
import Contract
import RoomCore

// Everything else that is read from a body: queries, ticks, and what clients read of the worker.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMessage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let body = Array(UnsafeBufferPointer(start: start, count: count))
    switch QueryDecoder.decode(body) {
    case .success(let query):
        check(
            QueryDecoder.decode(QueryEncoder.encode(query)) == .success(query), "the query does not come back"
        )
    case .failure(let problem): checkProblem(problem.detail)
    }
    if let tick = Tick.decode(body) {
        check(tick.rooms.count <= Tick.maximumRooms, "a tick with too many rooms")
        let parts = Tick.split(scheduler: "s", rooms: tick.rooms)
        check(parts.flatMap(\.rooms) == tick.rooms, "a split tick lost rooms")
        for part in parts { check(part.encode().count <= Tick.maximumBytes, "a part too large") }
    }
    if case .failure(let problem) = StrictJSON.parse(body) { checkProblem(problem.detail) }
    if case .failure(let problem) = CommandDecoder.decodePolicy(body) { checkProblem(problem.detail) }
    _ = TickAnswer.decode(body)
    _ = ReplyDecoder.decode(body)
    _ = QueryReplyDecoder.rooms(body)
    _ = QueryReplyDecoder.participants(body)
    _ = SessionFact.decode(body)
    _ = WorkerState.decode(body)
    checkShown(body)
    return 0
}

/// A dead letter can hold anything, and is shown on somebody's terminal.
private func checkShown(_ body: [UInt8]) {
    let letter = Letter(
        routingKey: "k",
        properties: Properties(headers: ["h": .string(body), "x-overtime-detail": .string(body)]),
        body: .bytes(body))
    let id = LetterID.hash(of: letter)
    check(id == LetterID.hash(of: letter) && id.text.utf8.count == 10, "the id of a letter")
    let encoded = LetterEncoder.encodeWhole(letter, id: id)
    let lines = PrettyJSON.lines(body) ?? []
    for text in lines + [String(decoding: encoded, as: UTF8.self), PrintableText.escaped(body)] {
        check(!text.unicodeScalars.contains(where: PrintableText.isUnsafe), "an unsafe character is shown")
    }
    // Our own reader takes no NUL, also not as \u0000.
    guard !body.contains(0) else { return }
    let whole = StrictJSON.parse(encoded, maximumBytes: .max)
    guard case .success(let value) = whole else { fatalError("a letter's JSON cannot be read") }
    if let text = String(validating: body, as: UTF8.self) {
        check(value["body"]?.string == text, "the body does not come back")
    }
    if !lines.isEmpty {
        let again = StrictJSON.parse(Array(lines.joined(separator: "\n").utf8), maximumBytes: .max)
        check(again == StrictJSON.parse(body), "pretty JSON is other JSON")
    }
    let restored = RestoredCommand(letter, user: nil)
    check(restored.properties.headers?.entries.count == 1, "a header was lost, or kept")
}

private func checkProblem(_ detail: String) {
    check(!detail.isEmpty && detail.utf8.count <= PrintableText.maximumBytes, "the detail's length")
    check(!detail.unicodeScalars.contains(where: PrintableText.isControl), "a control character in a detail")
}
