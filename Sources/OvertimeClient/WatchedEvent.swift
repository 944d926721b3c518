package import Contract
package import RoomCore

/// An event as a subscriber sees it.
package struct WatchedEvent: Sendable {
    package let type: String
    package let room: RoomID
    package let sequence: Int64
    package let time: Instant
    package let data: JSONValue

    /// Nil for anything that is no event of Overtime.
    package static func decode(_ body: [UInt8]) -> WatchedEvent? {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes),
            let type = whole["type"]?.string, let data = whole["data"], let room = data["room"]?.string,
            let sequence = whole["sequence"]?.string.flatMap(Int64.init), let time = whole["time"]?.instant
        else { return nil }
        return WatchedEvent(type: type, room: RoomID(room), sequence: sequence, time: time, data: data)
    }
}
