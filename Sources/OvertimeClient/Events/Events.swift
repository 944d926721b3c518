import Contract
public import FoundationEssentials

extension Overtime {
    /// Where a sequence of events begins.
    public enum Start: Hashable, Sendable {
        /// With what is published from now on.
        case now
        /// With the oldest event in the log.
        case beginning
        /// With the first event in the log of this instant or later.
        case time(Date)
        /// With what stands in the log after an event's position: for a program that starts again.
        ///
        /// - seen: the last sequence of each room that it had seen, since a copy of an event may stand in the log once more, later.
        case after(_ position: Int64, seen: [String: Int64])
    }

    /// What a sequence of events says.
    public enum Notice: Hashable, Sendable {
        /// Something that happened in a room.
        case event(Event)
        /// Something is missing in this place.
        case gap(Gap)
    }

    /// Events that were published and will not come.
    public struct Gap: Hashable, Sendable {
        /// Nil where it is not known which rooms had events: ask `status` of those that matter.
        public let room: String?
        /// The sequences on both sides of what is missing, of which the first was heard and the other comes next; nil
        /// where they are not known.
        public let after: Int64?
        /// See `after`.
        public let before: Int64?

        static let unknown = Gap(room: nil, after: nil, before: nil)
    }

    /// The state of a feed's connection, for who watches it.
    package enum FeedState: Sendable {
        case connected(isAgain: Bool)
        case disconnected(String)
    }

    /// Begins to listen, and returns once it does: what is published from then on is heard.
    ///
    /// Each event comes once and, within its room, in order. After a lost connection the sequence goes on where it stopped, from
    /// the log of events, without a gap as long as the log reaches back (a week, where the worker does not say
    /// otherwise); what is missing all the same is told in its place. Without the right to read the log, and while it is down,
    /// events are heard live, and each interruption is told as a gap. Where the connection is lost before the first event came, up to a
    /// minute of events before the start may come too. A sequence has a connection of its own and hears the events of all rooms: a
    /// program with many rooms listens once and looks at each event's room. One that takes its events slowly holds back
    /// only itself.
    ///
    /// - Parameters:
    ///   - room: only the events of this room; nil for all.
    ///   - start: where to begin.
    ///   - timeout: how long to wait for the broker; nil for the configuration's.
    /// - Throws: `unreachable`, `brokerRefuses`, `noWorker` where there is no log, `malformed` for a start in the log where the
    ///   configuration says that there is none, `cancelled`, `closed`.
    public func events(
        of room: String? = nil, from start: Start = .now, timeout: Duration? = nil
    ) async throws(OvertimeError) -> Events {
        try await events(of: room, from: start, limit: timeout ?? self.timeout) { _ in }
    }

    /// The same, told of lost and new connections; without a limit it waits for ever.
    package func events(
        of room: String?, from start: Start, limit: Duration?,
        observer: @escaping @Sendable (FeedState) -> Void
    ) async throws(OvertimeError) -> Events {
        Events(try await listen(of: room, from: start, limit: limit, observer: observer), of: self)
    }

    /// The same, without a hold on the client.
    func listen(
        of room: String?, from start: Start, limit: Duration?,
        observer: @escaping @Sendable (FeedState) -> Void
    ) async throws(OvertimeError) -> EventFeed {
        guard start == .now || topology.logMaxAge != nil else {
            throw .malformed("a start in the past needs the log of events, which usesLog = false leaves out")
        }
        let feed = EventFeed(
            connection: eventsConnection, topology: topology, component: eventsComponent, room: room,
            start: start,
            observer: observer)
        guard roster.add(feed) else {
            feed.requestClose()
            throw .closed
        }
        do throws(OvertimeError) {
            try await feed.ready(limit: limit)
        } catch {
            await offPool { feed.close() }
            throw error
        }
        return feed
    }

    /// Events as they come: a sequence that is gone through once, by one task. It ends when the client is closed, `close` is
    /// called or the task is cancelled.
    public final class Events: AsyncSequence, Sendable {
        private let feed: EventFeed
        private let client: Overtime

        init(_ feed: EventFeed, of client: Overtime) {
            self.feed = feed
            self.client = client
        }

        public func makeAsyncIterator() -> Iterator { Iterator(feed: feed, client: client) }

        /// Ends the sequence and its connection.
        public func close() async {
            let feed = feed
            await offPool { feed.close() }
        }

        /// Gives one notice after the other.
        public struct Iterator: AsyncIteratorProtocol {
            let feed: EventFeed
            let client: Overtime

            public func next(isolation actor: isolated (any Actor)? = #isolation) async -> Notice? {
                await feed.next()
            }

            public func next() async -> Notice? { await feed.next() }
        }
    }
}
