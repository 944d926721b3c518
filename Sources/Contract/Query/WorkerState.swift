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

    /// A worker that holds a lease on shards.
    package struct Member: Hashable, Sendable {
        package let run: String
        package let host: String
        package let pid: Int64
        /// Those that it consumes, ascending.
        package let shards: [Int64]
        /// How far the store's clock is ahead of its host's, in milliseconds.
        package let clockOffset: Int64

        package init(run: String, host: String, pid: Int64, shards: [Int64], clockOffset: Int64) {
            self.run = run
            self.host = host
            self.pid = pid
            self.shards = shards
            self.clockOffset = clockOffset
        }
    }

    package let entries: [Entry]
    /// All workers of the store, as the one that answers last saw them; empty where it has the store for itself.
    package let members: [Member]
    /// The worker's clock when it answered; the store's where several workers share it.
    package let serverTime: Instant

    package init(entries: [Entry], members: [Member] = [], serverTime: Instant) {
        self.entries = entries
        self.members = members
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
            if !members.isEmpty {
                writer.field("members", array: members) { writer, member in
                    writer.object { writer in
                        writer.field("run", member.run)
                        writer.field("host", member.host)
                        writer.field("pid", member.pid)
                        writer.field("shards", member.shards.map { "\($0)" }.joined(separator: ","))
                        writer.field("clockOffset", member.clockOffset)
                    }
                }
            }
            writer.field("serverTime", serverTime)
        }
    }

    package static func decode(_ body: [UInt8]) -> WorkerState? {
        guard case .success(let whole) = StrictJSON.parse(body, maximumBytes: StrictJSON.maximumAnswerBytes),
            whole["ok"]?.bool == true,
            let values = whole["state"]?.array, let serverTime = whole["serverTime"]?.instant
        else { return nil }
        var entries: [Entry] = []
        for value in values {
            guard let name = value["name"]?.string, let text = value["value"]?.string else { return nil }
            entries.append(Entry(name, text))
        }
        var members: [Member] = []
        for value in whole["members"]?.array ?? [] {
            guard let member = Member(value) else { return nil }
            members.append(member)
        }
        return WorkerState(entries: entries, members: members, serverTime: serverTime)
    }
}

extension WorkerState.Member {
    init?(_ value: JSONValue) {
        guard let run = value["run"]?.string, let host = value["host"]?.string,
            let pid = value["pid"]?.integer, let text = value["shards"]?.string,
            let clockOffset = value["clockOffset"]?.integer
        else { return nil }
        let shards = text.split(separator: ",").map { Int64($0) }
        guard !shards.contains(nil) else { return nil }
        self.init(
            run: run, host: host, pid: pid, shards: shards.compactMap { $0 }, clockOffset: clockOffset)
    }
}
