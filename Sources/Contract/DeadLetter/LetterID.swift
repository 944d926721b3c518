internal import AMQP

/// What a person calls a dead letter: ten letters and digits that stay the same however often the letter goes back
/// to its queue, and that another machine finds too.
///
/// It is a hash of everything that a publisher or the worker gave the letter: its routing key, its properties, its
/// headers, its body. What the broker adds at each delivery is left out. Letters that agree in all of this are the
/// same to anybody; their ids get `-2`, `-3`, … in the order of the queue, and it does not matter which is which.
package struct LetterID: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) { self.text = text }

    package var description: String { text }

    /// The id of a letter without others of its kind.
    package static func hash(of letter: Letter) -> LetterID {
        var hash = Hash()
        hash.add(letter.routingKey.bytes)
        let properties = letter.properties
        for text in [
            properties.contentType, properties.contentEncoding, properties.correlationID, properties.replyTo,
            properties.expiration, properties.messageID, properties.type, properties.userID, properties.appID,
            properties.clusterID,
        ] { hash.add(text?.bytes) }
        hash.add(properties.timestamp ?? 0)
        hash.add(UInt64(properties.priority ?? 0))
        // In order of their names: a broker may sort the headers anew.
        let headers = (properties.headers?.entries ?? []).filter {
            !BrokerHeaders.perDelivery.contains($0.key)
        }
        for entry in headers.sorted(by: { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }) {
            hash.add(entry.key.bytes)
            hash.add(entry.value)
        }
        switch letter.body {
        case .bytes(let bytes): hash.add(bytes)
        case .discarded(let size): hash.add(size)
        }
        return LetterID(hash.text)
    }

    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567")

    /// FNV-1a of 64 bits, of which 50 are shown. Letters that meet by chance or by somebody's art still have
    /// different ids, by their number.
    private struct Hash {
        private var state: UInt64 = 0xCBF2_9CE4_8422_2325

        mutating func add(_ byte: UInt8) { state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }

        mutating func add(_ number: UInt64) {
            for shift in stride(from: 0, to: 64, by: 8) {
                add(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }

        /// With its length, so that two neighbours cannot pass bytes to each other.
        mutating func add(_ bytes: [UInt8]?) {
            guard let bytes else { return add(0 as UInt8) }
            add(1 as UInt8)
            add(UInt64(bytes.count))
            for byte in bytes { add(byte) }
        }

        mutating func add(_ value: FieldValue) {
            switch value {
            case .array(let values):
                add(UInt64(values.count))
                for value in values { add(value) }
            case .table(let table):
                add(UInt64(table.entries.count))
                for entry in table.entries.sorted(by: { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
                ) {
                    add(entry.key.bytes)
                    add(entry.value)
                }
            case .string(let bytes), .bytes(let bytes): add(bytes)
            // A decimal, a fraction, a number: as it is written.
            default: add(Array("\(value)".utf8))
            }
        }

        var text: String {
            // Mixed once more: the low bits of FNV are its best.
            let mixed = state ^ (state >> 32)
            return String(
                (0..<10).map { alphabet[Int(truncatingIfNeeded: mixed >> UInt64($0 * 5) & 31)] })
        }
    }
}

/// Gives letters their ids in the order of the queue, and equal ones their numbers.
package struct LetterNumbering {
    private var seen: [LetterID: Int] = [:]

    package init() {}

    package mutating func id(of letter: Letter) -> LetterID {
        let id = LetterID.hash(of: letter)
        let count = (seen[id] ?? 0) + 1
        seen[id] = count
        return count == 1 ? id : LetterID("\(id.text)-\(count)")
    }
}

/// What the broker writes into headers by itself.
enum BrokerHeaders {
    /// New at each delivery.
    static let perDelivery: Set<ShortString> = ["x-delivery-count", "x-acquired-count"]

    /// Its notes on earlier deaths: with them a message that is sent again would look as if it had died already.
    static func isNote(_ name: ShortString) -> Bool {
        perDelivery.contains(name) || name == "x-death" || name.bytes.starts(with: "x-first-death-".utf8)
            || name.bytes.starts(with: "x-last-death-".utf8)
    }
}
