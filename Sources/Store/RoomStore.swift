package import RoomCore

/// What the worker asks of a store: use cases, each one transaction, none of them CRUD.
///
/// **The fence.** Each room has a version that grows by one with every committed change. `commit` compares the
/// version of every room that the batch decided on, also of those it only read and of those that have no row
/// yet (version 0), and writes everything or nothing. "One writer a room" rests on this comparison alone, so
/// a worker that was frozen for a minute and wakes up behind another one does no harm.
///
/// **After a failed commit** the outcome may be unknown (`StoreError.io`). Forget the batch's rooms, load and
/// decide again: the answers found tell what was applied. Rows of an unknown commit may stand in the outbox,
/// so read on from the last position that was known (`unpublished(after:limit:)`).
///
/// **Kept for ever**: a room's id, `sequence` and `sessionNumber`. Everything else is pruned.
///
/// A store is used from one thread, synchronously, and heals by itself: a call that fails with a transient
/// error leaves it fit for the next call.
package protocol RoomStore: AnyObject {
    /// Everything a batch needs. Unknown rooms come back as `Room(id:)` with version 0.
    func load(_ request: BatchRequest) throws(StoreError) -> BatchState

    /// Writes a batch in one transaction; durable when it returns.
    ///
    /// - Returns: the positions of the outbox rows, ascending, one a draft, in their order.
    func commit(_ batch: BatchCommit) throws(StoreError) -> [Int64]

    /// What has not been published yet, in order of position.
    func unpublished(after position: Int64, limit: Int) throws(StoreError) -> [OutboxMessage]

    /// Forgets what was published; positions that are not there (any more) are passed over.
    func markPublished(_ positions: [Int64]) throws(StoreError)

    /// Rooms with a waiting or running session, in byte order of their ids.
    func liveRooms(after room: RoomID?, limit: Int) throws(StoreError) -> [Room]

    /// Who is connected to a session, in byte order; nobody where that session is over.
    func participants(
        of room: RoomID, session: Int64, after user: UserID?, limit: Int
    ) throws(StoreError) -> [Participant]

    /// Rooms whose next due instant is `now` or earlier, of the next `limit` ones in byte order of their ids.
    func overdue(at now: Instant, after last: RoomID?, limit: Int) throws(StoreError) -> OverduePage

    /// Does what commits have put off, such as moving a write-ahead log into the database. It takes as long as some
    /// commits, so it is for after what they brought has been sent; all is durable without it. False where there was
    /// nothing to do yet.
    func moveLog() throws(StoreError) -> Bool

    /// Removes what its retention no longer keeps, looking at no more than `limit` rows of a kind.
    func prune(_ retention: Retention, limit: Int) throws(StoreError) -> PruneCount

    /// Registers a worker's run.
    ///
    /// - Returns: runs that neither ended cleanly nor live, oldest first.
    func beginRun(_ run: RunRow) throws(StoreError) -> [String]

    /// Says that a run ended cleanly: its attempt marks no longer count.
    func endRun(_ id: String) throws(StoreError)

    /// Marks messages as being tried by `run`, durably; a mark is removed by the message's own commit.
    func markAttempts(_ keys: [AttemptKey], run: String) throws(StoreError)

    /// How many crashed runs have marked each of these messages; those without any are left out.
    func crashes(of keys: [AttemptKey]) throws(StoreError) -> [AttemptKey: Int]

    func statistics() throws(StoreError) -> StoreStatistics

    /// A small real write transaction, for recovery probes: throws what a commit would meet.
    func check() throws(StoreError)

    /// Gives the store up; every later call throws `closed`.
    func close()
}
