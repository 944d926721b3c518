package import AMQP
package import RoomCore

/// One message in the queue of dead letters, as it is read there.
package struct Letter: Hashable, Sendable {
    /// The routing key it was sent with: both the worker and the broker keep it.
    package let routingKey: ShortString
    package let properties: Properties
    package let body: Body

    package init(routingKey: ShortString, properties: Properties, body: Body) {
        self.routingKey = routingKey
        self.properties = properties
        self.body = body
    }

    package init(_ delivery: Delivery) {
        self.init(routingKey: delivery.routingKey, properties: delivery.properties, body: delivery.body)
    }

    package var size: UInt64 {
        switch body {
        case .bytes(let bytes): UInt64(bytes.count)
        case .discarded(let size): size
        }
    }

    /// Why it is here: the worker's word, or the broker's (`expired`, `delivery_limit`, `rejected`). The worker's
    /// counts first: a letter that it wrote may still carry the broker's traces of an earlier life.
    package var reason: String? {
        header(DeadLetter.reasonHeader) ?? death?["reason"]?.text
    }

    /// The worker's sentence, or what the broker noted.
    package var detail: String? {
        if let detail = header(DeadLetter.detailHeader) { return detail }
        guard let death else { return nil }
        let times = death["count"]?.integer.map { $0 == 1 ? "once" : "\($0) times" }
        let expiration = death["original-expiration"]?.text.map { "its expiration was \($0) ms" }
        let parts = [times, expiration].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// Where it came from: the exchange and the queue of the broker's first note, else nothing is known but that
    /// a worker took it from the commands.
    package var origin: Origin? {
        guard header(DeadLetter.reasonHeader) == nil, let death else { return nil }
        return Origin(exchange: death["exchange"]?.text, queue: death["queue"]?.text)
    }

    package struct Origin: Hashable, Sendable {
        package let exchange: String?
        package let queue: String?

        package init(exchange: String?, queue: String?) {
            self.exchange = exchange
            self.queue = queue
        }
    }

    /// When it died, where the broker noted that; else when it was sent, where its sender said so. Nil for a time
    /// that no clock shows.
    package var time: Instant? {
        if header(DeadLetter.reasonHeader) == nil, case .timestamp(let seconds)? = death?["time"] {
            return Self.instant(seconds)
        }
        if let milliseconds = properties.headers?["timestamp_in_ms"]?.integer, milliseconds > 0 {
            return Instant(milliseconds: milliseconds)
        }
        return properties.timestamp.flatMap(Self.instant)
    }

    /// How long ago that was; a time that is still to come counts as now.
    package func age(at now: Instant) -> TimeSpan? {
        time.map { TimeSpan(milliseconds: max(0, (now - $0).milliseconds)) }
    }

    /// What the body, or a property in its place, says about the command, each only where it is valid by itself.
    package var echo: Echo {
        guard case .bytes(let bytes) = body else { return Echo(command: nil, room: nil, key: nil) }
        switch CommandDecoder.decode(body: bytes, properties: properties) {
        case .success(let command):
            return Echo(command: command.action.name, room: command.room, key: command.id)
        case .failure(let invalid): return Echo(command: invalid.command, room: invalid.room, key: invalid.id)
        }
    }

    package struct Echo: Hashable, Sendable {
        package let command: CommandKind?
        package let room: RoomID?
        package let key: CommandID?

        package init(command: CommandKind?, room: RoomID?, key: CommandID?) {
            self.command = command
            self.room = room
            self.key = key
        }
    }

    /// The first of the broker's notes, which is the latest.
    private var death: Table? {
        guard case .array(let deaths)? = properties.headers?["x-death"],
            case .table(let first)? = deaths.first
        else { return nil }
        return first
    }

    private func header(_ name: ShortString) -> String? { properties.headers?[name]?.text }

    /// Senders that give milliseconds instead of seconds end up beyond the year 9999.
    private static func instant(_ seconds: UInt64) -> Instant? {
        guard seconds > 0, seconds < 253_402_300_800 else { return nil }
        return Instant(milliseconds: Int64(seconds) * 1_000)
    }
}
