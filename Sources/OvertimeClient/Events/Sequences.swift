import RoomCore

/// The last event of each room that was seen: what tells a second copy, and a gap.
///
/// Remembers at least the last 100,000 rooms that had events and at most twice as many, so that its memory is bounded however
/// many rooms there ever are.
struct Sequences {
    enum Finding: Equatable {
        /// Its turn, or the first of its room that is seen.
        case next
        case copy
        /// Its turn after these two, of which what lies between is missing.
        case gap(after: Int64)
    }

    private let generation: Int
    private var recent: [RoomID: Int64] = [:]
    private var older: [RoomID: Int64] = [:]

    /// - Parameter seen: what is known from before.
    init(generation: Int = 100_000, seen: [RoomID: Int64] = [:]) {
        self.generation = generation
        older = seen
    }

    mutating func take(_ sequence: Int64, of room: RoomID) -> Finding {
        let last = recent[room] ?? older[room]
        if let last, sequence <= last { return .copy }
        if recent.count >= generation, recent[room] == nil {
            older = recent
            recent.removeAll(keepingCapacity: true)
        }
        recent[room] = sequence
        guard let last, sequence > last + 1 else { return .next }
        return .gap(after: last)
    }
}
