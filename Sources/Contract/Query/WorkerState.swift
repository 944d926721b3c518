package import RoomCore

/// How a worker is, in its own words: ordered names and values, which `overtime check` prints line by line.
/// Internal, and open: a newer worker may say more than an older `check` knows.
package struct WorkerState: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package let entries: [Entry]
    /// The worker's clock when it answered.
    package let serverTime: Instant

    package init(entries: [Entry], serverTime: Instant) {
        self.entries = entries
        self.serverTime = serverTime
    }

    package subscript(_ name: String) -> String? { entries.first { $0.name == name }?.value }

    package func encode() -> [UInt8] {
        JSONWriter.object(capacity: 1_024) { writer in
            writer.field("ok", true)
            writer.field("state", array: entries) { writer, entry in
                writer.object { writer in
                    writer.field("name", entry.name)
                    writer.field("value", entry.value)
                }
            }
            writer.field("serverTime", serverTime)
        }
    }

    package static func decode(_ body: [UInt8]) -> WorkerState? {
        guard case .success(let whole) = StrictJSON.parse(body), whole["ok"]?.bool == true,
            let values = whole["state"]?.array, let serverTime = whole["serverTime"]?.instant
        else { return nil }
        var entries: [Entry] = []
        for value in values {
            guard let name = value["name"]?.string, let text = value["value"]?.string else { return nil }
            entries.append(Entry(name, text))
        }
        return WorkerState(entries: entries, serverTime: serverTime)
    }
}
