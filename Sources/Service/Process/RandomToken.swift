/// Names that no other process has: own queues and scheduler ids.
package enum RandomToken {
    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567")

    /// Sixteen characters of lower-case base32, 80 bits from the system's generator.
    package static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        return make(using: &generator)
    }

    /// The same from a given generator, so that tests are repeatable.
    package static func make(using generator: inout some RandomNumberGenerator) -> String {
        String((0..<16).map { _ in alphabet[Int(generator.next() & 31)] })
    }
}
