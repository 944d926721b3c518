package import RoomCore

/// Why a store did not do what it was asked.
///
/// Three kinds, told apart by two questions. `isTransient`: wait and try again, nobody need do anything.
/// `isBatchFault`: the store is healthy and refuses this batch; run its commands one at a time. Neither: the
/// store needs a person, and going on would do harm. `conflict` is none of these: load and decide again.
package enum StoreError: Error, Hashable, Sendable {
    /// These rooms were changed by somebody else since they were loaded; nothing was written.
    case conflict([RoomID])
    case busy(path: String)
    case full(path: String)
    /// Reading or writing failed; whether a commit took place is unknown.
    case io(code: Int32, String)
    /// The database contradicts itself.
    case corrupt(String)
    /// One room's rows make no sense; the others are fine.
    case corruptRoom(RoomID, String)
    /// The disk takes no writes at present.
    case readOnly(path: String)
    /// The database may not be written by this process at all.
    case notWritable(path: String)
    /// Opening failed with this `errno`.
    case cannotOpen(path: String, errno: Int32)
    case newerSchema(found: Int, known: Int)
    /// Another worker owns the database; nil where it did not say who it is.
    case heldByAnother(pid: Int32?, host: String?, path: String)
    case notADatabase(path: String, String)
    /// The file was removed or replaced while it was in use: what is written now would be lost.
    case replaced(path: String)
    /// The file that is in use cannot be looked at, with this `errno`.
    case outOfReach(path: String, errno: Int32)
    /// The database server does not answer, or the connection to it was lost; whether a commit took place is unknown.
    case unreachable(server: String, String)
    /// The database server lets this user in to nothing, or not to what is needed.
    case denied(server: String, String)
    /// Other workers on this store run with another number of shards.
    case otherShards(mine: Int, theirs: Int, host: String)
    /// The store was moved to another place, and is of the past.
    case moved(path: String, to: String, at: String)
    /// A migration to this database is not finished.
    case halfMoved(server: String, from: String)
    /// A setting that durability rests on did not take effect.
    case settingRefused(String)
    /// The batch cannot be stored: a constraint, a size.
    case refused(String)
    case closed
}
