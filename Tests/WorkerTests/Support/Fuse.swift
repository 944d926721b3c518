/// Kills a worker at the n-th of its effects: from then on nothing that it does reaches anything.
final class Fuse {
    private(set) var count = 0
    var blowsAt: Int?
    private(set) var isBlown = false

    /// One effect; false where the worker is dead and it does not take place.
    func pass() -> Bool {
        guard !isBlown else { return false }
        count += 1
        if let blowsAt, count >= blowsAt { isBlown = true }
        return !isBlown
    }

    func reset() {
        isBlown = false
        blowsAt = nil
    }
}
