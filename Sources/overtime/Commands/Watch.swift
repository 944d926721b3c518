import Contract
import FoundationEssentials
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
        let feed = Following(
            room: options["room"], types: types, start: start, count: count, asJSON: options.has("json"))
        let overtime = composition.client("watch")
        let task = Task.detached { await feed.run(overtime) }
        do throws(WorkThread.Failure) {
            try Signals.listen { _ in task.cancel() }
        } catch {
            Output.error(error.reason)
            return .configuration
        }
        return Waiting.forValue {
            let exit = await task.value
            await overtime.close()
            return exit
        }
    }

    private static func eventTypes(_ options: Options) throws(UsageError) -> [String] {
        guard let type = options["type"] else { return [] }
        let known = EventType.allCases.map(\.rawValue)
        guard known.contains(type) else {
            throw UsageError("--type \(type) is no event\(Suggestion.text(for: type, among: known))")
        }
        return [type]
    }

    private static func start(_ options: Options) throws(UsageError) -> Overtime.Start {
        guard let text = options["from"] else { return .now }
        if text == "first" { return .beginning }
        if let instant = TimeText.instant(text) { return .time(Date(instant)) }
        if let seconds = TimeText.instant(String(text.dropLast()) + ".000Z"), text.hasSuffix("Z") {
            return .time(Date(seconds))
        }
        if text.hasPrefix("-"), let ago = DurationText.parse(String(text.dropFirst())) {
            return .time(Date(Instant(milliseconds: SystemClock().nowMilliseconds() - ago)))
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

/// Prints what a sequence of events brings.
private struct Following: Sendable {
    let room: String?
    let types: [String]
    let start: Overtime.Start
    let count: Int?
    let asJSON: Bool

    func run(_ overtime: Overtime) async -> ProcessExit {
        let events: Overtime.Events
        do throws(OvertimeError) {
            events = try await overtime.events(of: room, from: start, limit: nil) { say($0) }
        } catch .cancelled {
            return .ok
        } catch {
            return ProgramCommand.report(error)
        }
        var printed = 0
        for await notice in events {
            switch notice {
            case .event(let event):
                guard types.isEmpty || types.contains(event.type) else { continue }
                Output.line(asJSON ? event.json : EventText.line(event))
                printed += 1
                if printed == count {
                    await events.close()
                    return .ok
                }
            case .gap(let gap):
                Output.error(text(gap))
            }
        }
        return .ok
    }

    private func say(_ state: Overtime.FeedState) {
        switch state {
        case .connected(let isAgain): if isAgain { Output.error("connected again") }
        case .disconnected(let reason): Output.error("not connected, trying again: \(reason)")
        }
    }

    private func text(_ gap: Overtime.Gap) -> String {
        guard let room = gap.room, let after = gap.after, let before = gap.before else {
            return "events of the meantime were missed: --from reads what is in the log"
        }
        return "\(room): events between #\(after) and #\(before) were missed"
    }
}
