import Synchronization

@testable import AMQP

/// Queue names that are fresh each time they are asked for.
final class Names: Sendable {
    private let prefix: String
    private let count = Mutex(0)

    init(prefix: String) {
        self.prefix = prefix
    }

    func next() -> ShortString {
        name(
            count.withLock { count in
                count += 1; return count
            })
    }

    var latest: ShortString { name(count.withLock { $0 }) }

    private func name(_ number: Int) -> ShortString { ShortString("\(prefix).\(number)") ?? "test.too-long" }
}
