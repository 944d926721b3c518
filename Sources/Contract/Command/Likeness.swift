/// Finds what somebody meant who misspelt a name.
enum Likeness {
    /// The candidate at a distance of at most 2 edits, whatever its case; nil where none is near enough to be
    /// a help.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        let letters = lowercased(word)
        guard (1...32).contains(letters.count) else { return nil }
        return
            candidates
            .map { (name: $0, distance: distance(letters, lowercased($0))) }
            .filter { $0.distance <= 2 && $0.distance < $0.name.utf8.count }
            .min { $0.distance < $1.distance }?.name
    }

    private static func lowercased(_ word: String) -> [UInt8] {
        word.utf8.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 + 0x20 : $0 }
    }

    /// Insertions, deletions, changes and swaps of neighbours that lead from one word to the other.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforePrevious = [Int](repeating: 0, count: right.count + 1)
        var previous = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var best = min(
                    previous[column + 1] + 1, current[column] + 1,
                    previous[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    best = min(best, beforePrevious[column - 1] + 1)
                }
                current.append(best)
            }
            beforePrevious = previous
            previous = current
        }
        return previous[right.count]
    }
}
