internal import AMQP
internal import Contract

/// Letters as they will be when they have come back, in order to know them again.
///
/// An acknowledgement may be lost when its channel closes soon after, although the close is answered: of 3,038 letters
/// dropped in one go on RabbitMQ 3.10.8, 583 were in the queue again. Probably the broker's client of quorum queues holds
/// acknowledgements back while many commands are under way; that was not looked up. Nothing on the wire tells, so a pass
/// looks again until none of them is there.
///
/// To take another letter for one of them would destroy it. Two things keep them apart:
///
/// - Every letter that a closed channel returns has been delivered once more than before. Only letters that an earlier
///   look has returned are acted on, so each that was acted on comes back with a count of 2 at least; an equal one that
///   died meanwhile is either new or was returned by the close, which makes its count 1.
/// - Equal letters that were there together, of which one was acted on and another was not, may have the same count. So
///   those that were kept are remembered too, and are looked for first: it does not matter which is which.
struct LetterBag {
    /// What all equal letters with as many deliveries share.
    struct Key: Hashable {
        let hash: LetterID
        let deliveries: Int64

        /// As a look finds it.
        init(_ letter: Letter, wasReturned: Bool) {
            hash = LetterID.hash(of: letter)
            // A queue that does not count, a classic one, tells only whether there was an earlier delivery.
            deliveries = max(Self.counted(letter), wasReturned ? 1 : 0)
        }

        private init(hash: LetterID, deliveries: Int64) {
            self.hash = hash
            self.deliveries = deliveries
        }

        var afterReturn: Key { Key(hash: hash, deliveries: deliveries + 1) }

        /// The broker's own header, absent at the first delivery. Both 3.10.8 and 4.3.6 raise it when a channel closes.
        static func counted(_ letter: Letter) -> Int64 {
            let count = letter.properties.headers?["x-delivery-count"]?.integer ?? 0
            return min(max(count, 0), 1_000_000_000)
        }
    }

    private var counts: [Key: Int] = [:]

    var isEmpty: Bool { counts.isEmpty }

    /// Adds a letter as the present look found it.
    mutating func add(_ found: Key) { counts[found.afterReturn, default: 0] += 1 }

    /// Whether a letter that a later look finds is one of them; it is crossed off.
    mutating func remove(_ found: Key) -> Bool {
        guard let count = counts[found] else { return false }
        counts[found] = count > 1 ? count - 1 : nil
        return true
    }
}

/// What is to be done with letters that nobody has looked at before, once they have come back.
struct PostponedLetters {
    struct Entry {
        let id: LetterID
        let verdict: DeadLetterBox.Verdict
    }

    private var entries: [LetterID: [Entry]] = [:]
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func add(_ entry: Entry, _ key: LetterBag.Key) {
        entries[key.hash, default: []].append(entry)
        count += 1
    }

    /// The first of those that are equal.
    mutating func remove(_ key: LetterBag.Key) -> Entry? {
        guard var equal = entries[key.hash] else { return nil }
        let entry = equal.removeFirst()
        entries[key.hash] = equal.isEmpty ? nil : equal
        count -= 1
        return entry
    }
}
