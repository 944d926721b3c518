import AMQP
import Contract
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
        let deadline = MonotonicClock.milliseconds() + (try timeout(options))
        let composition = Composition.load(options)
        let requester = Requester(
            connection: composition.link("overtime rooms"), topology: composition.topology, component: "rooms"
        )
        defer { requester.close() }
        var after: RoomID?
        var count = 0
        repeat {
            let page: QueryPage<LiveRoom, RoomID>
            switch requester.rooms(after: after, topology: composition.topology, until: deadline) {
            case .failure(let failure): return report(failure)
            case .success(let answer): page = answer
            }
            if count == 0, !page.rows.isEmpty, !options.has("json") { Output.line(RoomText.header) }
            for room in page.rows {
                if options.has("json") {
                    Output.line(room.encode())
                } else {
                    Output.line(RoomText.line(room, now: page.serverTime))
                }
            }
            count += page.rows.count
            after = page.next
        } while after != nil
        if count == 0, !options.has("json") { Output.line("no session is running or waiting") }
        return .ok
    }
}

extension Requester {
    func rooms(
        after: RoomID?, topology: Topology, until deadline: Int64
    ) -> Result<QueryPage<LiveRoom, RoomID>, RequestFailure> {
        query(.rooms(after: after, limit: 500), topology: topology, until: deadline).flatMap { body in
            QueryReplyDecoder.rooms(body).mapError { _ in .noReply }
        }
    }

    func query(_ query: Query, topology: Topology, until deadline: Int64) -> Result<[UInt8], RequestFailure> {
        ask(
            Request(
                exchange: topology.queries, routingKey: .empty, body: QueryEncoder.encode(query),
                isPersistent: false),
            until: deadline)
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

    static func line(_ room: LiveRoom, now: Instant) -> String {
        let left = room.endsAt.map { HumanTime.span($0 - now) } ?? "-"
        let end = room.endsAt.map { HumanTime.clock($0) } ?? "-"
        return EventText.pad(room.room.text, 23) + " " + EventText.pad(room.state.rawValue, 10)
            + EventText.pad(left, 14)
            + EventText.pad(end, 10) + EventText.pad("\(room.connected)", 11) + "\(room.extensions)"
    }
}
