import AMQP
import Contract
import OvertimeClient
import RoomCore
import Service

extension ProgramCommand {
    static let watch = ProgramCommand(
        name: "watch", summary: "print events as they come, or those in the log first", usage: "[OPTIONS]",
        details: """
            Prints events as they are published; with --from first those in the log from there on, and then goes on without a
            gap. With --json one CloudEvent a line, as published. Ends after --count events, or with an interrupt.
            """,
        options: [
            Option("room", "ROOM", "only this room"),
            Option("type", "TYPE", "only this type of event, such as session.ended"),
            Option(
                "from", "TIME",
                "first, or an instant such as 2026-11-29T12:40:00.000Z or -10m (ten minutes ago)"),
            Option("count", "N", "end after this many events"),
            .json,
        ]
    ) { options throws(UsageError) in
        try refuseArguments(options)
        let types = try eventTypes(options)
        let start = try start(options)
        let count = try count(options)
        let composition = Composition.load(options)
        if start != .now, composition.topology.logMaxAge == nil {
            Output.error("--from needs the event log, which amqp.log: off leaves out")
            return .configuration
        }
        Signals.block()
        let mailbox = Mailbox<LinkEvent>()
        do throws(WorkThread.Failure) {
            try Signals.listen { _ in mailbox.close() }
        } catch {
            Output.error(error.reason)
            return .configuration
        }
        let feed = EventFeed(
            connection: composition.link("overtime watch"), topology: composition.topology, types: types,
            start: start,
            mailbox: mailbox)
        defer { feed.close() }
        return follow(
            feed, room: options["room"].map { RoomID($0) }, count: count, asJSON: options.has("json"))
    }

    private static func follow(_ feed: EventFeed, room: RoomID?, count: Int?, asJSON: Bool) -> ProcessExit {
        var printed = 0
        var isLost = false
        while let outcome = feed.next(until: nil) {
            switch outcome {
            case .item(let item):
                guard room == nil || room == item.event.room else { continue }
                if asJSON { Output.line(item.body) } else { Output.line(EventText.line(item.event)) }
                printed += 1
                if printed == count { return .ok }
            case .connected(let afterGap):
                isLost = false
                if afterGap {
                    Output.error(
                        "connected again; events of the meantime were missed: --from reads them from the log")
                }
            case .disconnected(let error):
                if !isLost { Output.error("not connected, trying again: \(error)") }
                isLost = true
            case .failed(let failure): return report(failure)
            case .stopped: return .ok
            }
        }
        return .ok
    }

    private static func eventTypes(_ options: Options) throws(UsageError) -> [String] {
        guard let type = options["type"] else { return [] }
        let known = EventType.allCases.map(\.rawValue)
        guard known.contains(type) else {
            throw UsageError("--type \(type) is no event\(Suggestion.text(for: type, among: known))")
        }
        return [type]
    }

    private static func start(_ options: Options) throws(UsageError) -> FeedStart {
        guard let text = options["from"] else { return .now }
        if text == "first" { return .first }
        if let instant = TimeText.instant(text) { return .time(instant) }
        if let seconds = TimeText.instant(String(text.dropLast()) + ".000Z"), text.hasSuffix("Z") {
            return .time(seconds)
        }
        if text.hasPrefix("-"), let ago = DurationText.parse(String(text.dropFirst())) {
            return .time(Instant(milliseconds: SystemClock().nowMilliseconds() - ago))
        }
        throw UsageError("--from \(text) is no instant: first, 2026-11-29T12:40:00Z or -10m would be right")
    }

    private static func count(_ options: Options) throws(UsageError) -> Int? {
        guard let text = options["count"] else { return nil }
        guard let count = Int(text), count > 0 else {
            throw UsageError("--count \(text) is no number of events: 1 or more would be right")
        }
        return count
    }
}
