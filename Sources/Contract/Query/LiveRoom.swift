package import RoomCore

/// A room with a waiting or running session, as a page of the query `rooms` shows it.
package struct LiveRoom: Hashable, Sendable {
    package let room: RoomID
    package let session: Int64
    package let state: Snapshot.State
    /// Nil while waiting; so are `endsAt` and `nextDueAt`.
    package let startedAt: Instant?
    package let endsAt: Instant?
    /// When the room next has something to say; in the past where that is overdue.
    package let nextDueAt: Instant?
    package let connected: Int64
    package let extensions: Int64
    /// The number of the room's last event.
    package let sequence: Int64

    package init(
        room: RoomID, session: Int64, state: Snapshot.State, startedAt: Instant?, endsAt: Instant?,
        nextDueAt: Instant?, connected: Int64, extensions: Int64, sequence: Int64
    ) {
        self.room = room
        self.session = session
        self.state = state
        self.startedAt = startedAt
        self.endsAt = endsAt
        self.nextDueAt = nextDueAt
        self.connected = connected
        self.extensions = extensions
        self.sequence = sequence
    }
}

extension LiveRoom {
    /// The row by itself, for `overtime rooms --json`.
    package func encode() -> [UInt8] {
        JSONWriter.bytes { write(to: &$0) }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.field("room", room)
            writer.field("session", session)
            writer.field("state", state.rawValue)
            writer.field("startedAt", startedAt)
            writer.field("endsAt", endsAt)
            writer.field("nextDueAt", nextDueAt)
            writer.field("connected", connected)
            writer.field("extensions", extensions)
            writer.field("sequence", sequence)
        }
    }

    init?(_ value: JSONValue) {
        guard let room = value["room"]?.string, let session = value["session"]?.integer,
            let state = value["state"]?.string.flatMap(Snapshot.State.init(rawValue:)),
            let connected = value["connected"]?.integer, let extensions = value["extensions"]?.integer,
            let sequence = value["sequence"]?.integer
        else { return nil }
        self.init(
            room: RoomID(room), session: session, state: state, startedAt: value["startedAt"]?.instant,
            endsAt: value["endsAt"]?.instant, nextDueAt: value["nextDueAt"]?.instant, connected: connected,
            extensions: extensions, sequence: sequence)
    }
}

extension Participant {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.field("user", user)
            writer.field("role", role.rawValue)
            writer.field("joinedAt", joinedAt)
        }
    }

    init?(_ value: JSONValue) {
        guard let user = value["user"]?.string,
            let role = value["role"]?.string.flatMap(Role.init(rawValue:)),
            let joinedAt = value["joinedAt"]?.instant
        else { return nil }
        self.init(user: UserID(user), role: role, joinedAt: joinedAt)
    }
}
