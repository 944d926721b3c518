/// A value in a log line.
package enum LogValue: Sendable, Equatable {
    case string(String)
    case int(Int64)
    case double(Double)
    case bool(Bool)
    case null
}

/// What may stand in a log line. Not every type may: a secret or a message body has no business there.
package protocol LogRepresentable: Sendable {
    var logValue: LogValue { get }
}

extension LogValue: LogRepresentable {
    package var logValue: LogValue { self }
}

extension String: LogRepresentable {
    package var logValue: LogValue { .string(self) }
}

extension Int: LogRepresentable {
    package var logValue: LogValue { .int(Int64(self)) }
}

extension Int32: LogRepresentable {
    package var logValue: LogValue { .int(Int64(self)) }
}

extension Int64: LogRepresentable {
    package var logValue: LogValue { .int(self) }
}

extension UInt64: LogRepresentable {
    package var logValue: LogValue { Int64(exactly: self).map(LogValue.int) ?? .string(String(self)) }
}

extension Double: LogRepresentable {
    package var logValue: LogValue { .double(self) }
}

extension Bool: LogRepresentable {
    package var logValue: LogValue { .bool(self) }
}

extension Optional: LogRepresentable where Wrapped: LogRepresentable {
    package var logValue: LogValue { self?.logValue ?? .null }
}

/// The data of a log line: names and values in the order in which they were written.
package struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    package private(set) var entries: [(name: String, value: LogValue)]

    package init(dictionaryLiteral elements: (String, any LogRepresentable)...) {
        entries = elements.map { ($0.0, $0.1.logValue) }
    }

    /// Fields to be appended one by one, which is cheaper than a literal: nothing of a value is put into a box.
    package init(capacity: Int) {
        entries = []
        entries.reserveCapacity(capacity)
    }

    package mutating func append(_ name: String, _ value: LogValue) {
        entries.append((name, value))
    }
}
