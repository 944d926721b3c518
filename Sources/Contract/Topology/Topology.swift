package import AMQP

/// Every name of contract section 1, for one prefix. Used by all components and by `overtime check`, so that
/// a name is spelt once.
package struct Topology: Hashable, Sendable {
    /// How answers reach a reply queue.
    package enum Replies: String, Hashable, Sendable, CaseIterable {
        /// The default exchange.
        case `default`
        /// `<prefix>.replies`, where the worker is not to have the right on the default exchange.
        case exchange
    }

    package struct Problem: Error, Hashable, Sendable {
        package let detail: String
    }

    package static let shardLimits = 1...1_024
    package static let maximumPrefixBytes = 128

    package let prefix: String
    package let shards: Int
    /// Whether ticks and queries have quorum queues, which the loss of a node does not stop.
    package let isCluster: Bool
    /// `x-max-age` of the log, such as `7D`; nil for no log.
    package let logMaxAge: String?
    package let replies: Replies

    package let commandsExchange: ShortString
    /// `x-consistent-hash`; used with more than one shard only.
    package let shardsExchange: ShortString
    /// In order of number; with one shard the one queue `<prefix>.commands`.
    package let commandQueues: [ShortString]
    package let eventsExchange: ShortString
    package let eventsTopicExchange: ShortString
    package let eventsLogQueue: ShortString
    /// Also the name of the queue; so with `ticks` and `dead`.
    package let queries: ShortString
    package let ticks: ShortString
    package let dead: ShortString
    /// Where answers are published to, with the `reply_to` as routing key.
    package let repliesExchange: ShortString

    package init(
        prefix: String = "overtime", shards: Int = 1, isCluster: Bool = false, logMaxAge: String? = "7D",
        replies: Replies = .default
    ) throws(Problem) {
        let name = try Self.names(prefix)
        guard Self.shardLimits.contains(shards) else {
            throw Problem(detail: "the number of shards must be between 1 and 1024, not \(shards)")
        }
        if let logMaxAge, LogAge.argument(logMaxAge) != logMaxAge {
            throw Problem(detail: "the age of the log must be a whole number with a unit, such as 7D")
        }
        self.prefix = prefix
        self.shards = shards
        self.isCluster = isCluster
        self.logMaxAge = logMaxAge
        self.replies = replies
        commandsExchange = name("commands")
        shardsExchange = name("commands.shards")
        commandQueues = shards == 1 ? [name("commands")] : (0..<shards).map { name("commands.\($0)") }
        eventsExchange = name("events")
        eventsTopicExchange = name("events.topic")
        eventsLogQueue = name("events.log")
        queries = name("queries")
        ticks = name("ticks")
        dead = name("dead")
        repliesExchange = replies == .exchange ? name("replies") : .empty
    }

    /// The name of a process's own queue.
    package func ownQueueName(component: String, token: String) -> ShortString? {
        ShortString("\(prefix).own.\(component).\(token)")
    }

    /// The names under a prefix. A checked prefix has at most 128 bytes, so none is cut to nothing.
    private static func names(_ prefix: String) throws(Problem) -> (String) -> ShortString {
        let isPlain = prefix.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."), UInt8(ascii: ":"):
                true
            default: false
            }
        }
        guard isPlain, (1...maximumPrefixBytes).contains(prefix.utf8.count) else {
            throw Problem(
                detail: "the prefix must have 1 to 128 letters, digits or the characters - _ . :")
        }
        guard !prefix.hasPrefix("amq."), prefix != "amq" else {
            throw Problem(detail: "the prefix must not be amq, which the broker keeps for itself")
        }
        return { ShortString("\(prefix).\($0)") ?? .empty }
    }
}

/// The age of the log: `7d` in the configuration, `7D` in the stream's argument.
package enum LogAge {
    /// The argument for an age such as `7d`, `12h`, `30m` or the argument itself; nil for anything else.
    package static func argument(_ text: String) -> String? {
        guard let unit = text.utf8.last, text.utf8.count <= 10 else { return nil }
        let digits = text.dropLast()
        guard digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let count = Int64(digits), count > 0
        else { return nil }
        switch unit {
        case UInt8(ascii: "d"): return "\(count)D"
        case UInt8(ascii: "Y"), UInt8(ascii: "M"), UInt8(ascii: "D"), UInt8(ascii: "h"), UInt8(ascii: "m"),
            UInt8(ascii: "s"):
            return "\(count)\(Unicode.Scalar(unit))"
        default: return nil
        }
    }
}
