package import RoomCore

/// A worker's run, from its start to its end, clean or not.
package struct RunRow: Hashable, Sendable {
    package let id: String
    package let pid: Int32
    package let host: String
    package let startedAt: Instant
    /// Names the system in which `pid` means something, such as one container; nil where it is not known. Of two runs
    /// with the same place one can tell by its process whether the other lives.
    package let place: String?

    package init(id: String, pid: Int32, host: String, startedAt: Instant, place: String? = nil) {
        self.id = id
        self.pid = pid
        self.host = host
        self.startedAt = startedAt
        self.place = place
    }
}

/// Names the kind of key by which attempts at a message are counted; it has no values.
package enum AttemptName {}

/// What a redelivered message is recognised by, command key or not.
package typealias AttemptKey = Identifier<AttemptName>
