import Synchronization

/// The feeds of a client, which end with it; held weakly, since a sequence that nobody goes through any more is over.
final class Roster: Sendable {
    private struct Member {
        weak var feed: EventFeed?
    }

    private struct State {
        var members: [Member] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    /// False once the client is closed.
    func add(_ feed: EventFeed) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.members.removeAll { $0.feed == nil }
            state.members.append(Member(feed: feed))
            return true
        }
    }

    /// Ends the sequences, and their connections without waiting for them.
    ///
    /// - Returns: those that there were.
    @discardableResult
    func requestClose() -> [EventFeed] {
        let feeds = state.withLock { state in
            state.isClosed = true
            return state.members.compactMap(\.feed)
        }
        for feed in feeds { feed.requestClose() }
        return feeds
    }
}
