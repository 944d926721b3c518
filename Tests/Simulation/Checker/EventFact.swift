import Contract
import RoomCore

/// An event as a subscriber reads it, without the product's own types for it.
struct EventFact {
    let type: String
    let sequence: Int64
    let session: Int64?
    let time: Int64
    let data: JSONValue

    init?(_ body: [UInt8]) {
        guard case .success(let whole) = StrictJSON.parse(body), let type = whole["type"]?.string,
            let sequence = whole["sequence"]?.string.flatMap(Int64.init),
            let time = whole["time"]?.instant, let data = whole["data"]
        else { return nil }
        self.type = type
        self.sequence = sequence
        self.time = time.milliseconds
        self.data = data
        session = data["session"]?.integer
    }

    func integer(_ name: String) -> Int64? { data[name]?.integer }

    func instant(_ name: String) -> Int64? { data[name]?.instant?.milliseconds }

    /// A number of minutes, or of seconds, in milliseconds.
    func span(_ name: String, unit: Double = 60_000) -> Int64? {
        data[name].flatMap { Self.milliseconds($0, unit: unit) }
    }

    static func milliseconds(_ value: JSONValue, unit: Double) -> Int64? {
        switch value {
        case .integer(let number): Int64((Double(number) * unit).rounded())
        case .real(let number): Int64((number * unit).rounded())
        default: nil
        }
    }

    /// How late a notice or an end came; nil for other events and for an end by command.
    var lateBy: Int64? {
        guard type == "session.window.opened" || data["cause"]?.string == "elapsed" else { return nil }
        return span("lateBy", unit: 1_000)
    }
}
