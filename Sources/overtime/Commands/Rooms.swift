import FoundationEssentials
import OvertimeClient
import RoomCore
import Service

extension ProgramCommand {
    static let rooms = ProgramCommand(
        name: "rooms", summary: "list the live sessions with the time left", usage: "[OPTIONS]",
        details: "Lists the rooms with a waiting or running session, in order of their names.",
        options: [.json, .timeout]
    ) { options throws(UsageError) in
        try refuseArguments(options)
        let asJSON = options.has("json")
        let deadline = MonotonicClock.milliseconds() + (try timeout(options))
        let listed = Composition.load(options).asking("rooms") { overtime async throws(OvertimeError) in
            var (after, count): (String?, Int) = (nil, 0)
            repeat {
                let left = Duration.milliseconds(max(deadline - MonotonicClock.milliseconds(), 0))
                let page = try await overtime.rooms(after: after, timeout: left)
                if count == 0, !page.rows.isEmpty, !asJSON { Output.line(RoomText.header) }
                for room in page.rows {
                    Output.line(asJSON ? room.json : RoomText.line(room, now: page.serverTime))
                }
                count += page.rows.count
                after = page.next
            } while after != nil
            return count
        }
        switch listed {
        case .failure(let failure): return report(failure)
        case .success(let count):
            if count == 0, !asJSON { Output.line("no session is running or waiting") }
            return .ok
        }
    }
}

/// A live room as a line for people.
private enum RoomText {
    static var header: String {
        Output.colour(
            EventText.pad("ROOM", 24) + EventText.pad("STATE", 10) + EventText.pad("LEFT", 14)
                + EventText.pad("ENDS", 10)
                + EventText.pad("CONNECTED", 11) + "EXTENSIONS", .dim)
    }

    static func line(_ room: Overtime.LiveRoom, now: Date) -> String {
        let left = room.endsAt.map { HumanTime.span(Instant($0) - Instant(now)) } ?? "-"
        let end = room.endsAt.map { HumanTime.clock(Instant($0)) } ?? "-"
        return EventText.pad(room.room, 23) + " " + EventText.pad(room.state.rawValue, 10)
            + EventText.pad(left, 14)
            + EventText.pad(end, 10) + EventText.pad("\(room.connected)", 11) + "\(room.extensions)"
    }
}
