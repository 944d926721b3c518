/// What somebody probably meant, for words that are not known.
package enum Suggestion {
    /// `; did you mean X?`, or nothing where no known word is near.
    package static func text(for word: String, among known: [String]) -> String {
        nearest(to: word, among: known).map { "; did you mean \($0)?" } ?? ""
    }

    /// The known word with the fewest slips between it and the given one, if they are few for its length.
    package static func nearest(to word: String, among known: [String]) -> String? {
        let word = word.lowercased()
        // Long words are compared in quadratic time, and nobody misspells one by its end.
        guard word.utf8.count <= 64 else { return nil }
        var best: (word: String, slips: Int)?
        for candidate in known {
            let slips = distance(Array(word.utf8), Array(candidate.lowercased().utf8))
            if slips <= max(2, candidate.utf8.count / 4), slips < best?.slips ?? .max {
                best = (candidate, slips)
            }
        }
        // A key without its group ("url" for "amqp.url") is further away than any slip.
        return best?.word ?? known.first { $0.hasSuffix("." + word) }
    }

    /// A value as it may be repeated in an error: one line, not too long.
    static func printable(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(80).map { scalar in
            scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) ? "?" : String(scalar)
        }
        return shown.joined() + (text.unicodeScalars.count > 80 ? "…" : "")
    }

    /// Insertions, deletions and replacements from one word to the other (Levenshtein).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var row = Array(0...right.count)
        for (index, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (column, other) in right.enumerated() {
                let replaced = diagonal + (letter == other ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, row[column + 1] + 1)
            }
        }
        return row[right.count]
    }
}
