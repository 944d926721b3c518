internal import AMQP
internal import Contract

/// The letters that were acknowledged, in order to know them again if they come back.
///
/// An acknowledgement may be lost when its channel closes soon after, although the close is answered: of 3,038 letters
/// dropped in one go on RabbitMQ 3.10.8, 583 were in the queue again. Probably the broker's client of quorum queues holds
/// acknowledgements back while many commands are under way; that was not looked up. Nothing on the wire tells, so a pass
/// looks again until none of them is there.
///
/// A letter that came back has been delivered once more than before; an equal one that has just died has not, so it is
/// never taken for the other.
struct SettledLetters {
    private struct Key: Hashable {
        let id: LetterID
        let deliveries: Int64
    }

    private var counts: [Key: Int] = [:]

    var isEmpty: Bool { counts.isEmpty }

    mutating func add(_ letter: Letter) {
        counts[Key(id: LetterID.hash(of: letter), deliveries: Self.deliveries(letter) + 1), default: 0] += 1
    }

    /// Whether this is one of them; it is crossed off.
    mutating func remove(_ letter: Letter) -> Bool {
        let key = Key(id: LetterID.hash(of: letter), deliveries: Self.deliveries(letter))
        guard let count = counts[key] else { return false }
        counts[key] = count > 1 ? count - 1 : nil
        return true
    }

    /// The broker's own header, absent at the first delivery.
    private static func deliveries(_ letter: Letter) -> Int64 {
        let count = letter.properties.headers?["x-delivery-count"]?.integer ?? 0
        return min(max(count, 0), 1_000_000_000)
    }
}
