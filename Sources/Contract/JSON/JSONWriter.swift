internal import RoomCore

/// Writes canonical JSON into one buffer: no spaces, fields in the order of the calls, only what must be
/// escaped is escaped. Equal calls make equal bytes, which is what lets copies of an event be identical.
///
/// It writes straight into the memory of the array that it makes. Where that is too small nothing is written beyond it,
/// only counted, and the calls are made once more with room for all: so they must have no effect but what is written.
struct JSONWriter {
    private let memory: UnsafeMutableBufferPointer<UInt8>
    /// How many bytes there are, also where they did not fit.
    private var count = 0
    /// Whether the next value in this container follows another one.
    private var needsComma = false

    private init(_ memory: UnsafeMutableBufferPointer<UInt8>) { self.memory = memory }

    /// Room for any event or reply whose names are not unusually long.
    private static let usualCapacity = 1_024

    /// The bytes of what `body` writes.
    static func bytes(capacity: Int = usualCapacity, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var needed = 0
        let written = [UInt8](unsafeUninitializedCapacity: capacity) { memory, initialized in
            var writer = JSONWriter(memory)
            body(&writer)
            needed = writer.count
            initialized = needed <= memory.count ? needed : 0
        }
        return needed == written.count ? written : bytes(capacity: needed, body)
    }

    /// The bytes of one object.
    static func object(capacity: Int = usualCapacity, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        bytes(capacity: capacity) { $0.object(body) }
    }

    /// How many bytes a text takes once written.
    static func size(ofString text: String) -> Int {
        var writer = JSONWriter(UnsafeMutableBufferPointer(start: nil, count: 0))
        writer.string(text)
        return writer.count
    }

    // MARK: Bytes

    private mutating func append(_ byte: UInt8) {
        if count < memory.count { memory[count] = byte }
        count += 1
    }

    private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let from = bytes.baseAddress, let to = memory.baseAddress, bytes.count <= memory.count - count {
            (to + count).update(from: from, count: bytes.count)
        }
        count += bytes.count
    }

    private mutating func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// With zeros in front where there are fewer digits than `width`.
    private mutating func append(digitsOf number: UInt64, width: Int = 1) {
        var (size, rest) = (1, number)
        while rest >= 10 {
            rest /= 10
            size += 1
        }
        let end = count + max(size, width)
        rest = number
        for place in (count..<end).reversed() {
            let digit = UInt8(truncatingIfNeeded: rest % 10)
            if place < memory.count { memory[place] = UInt8(ascii: "0") + digit }
            rest /= 10
        }
        count = end
    }

    // MARK: Values

    mutating func object(_ body: (inout JSONWriter) -> Void) {
        container("{", "}", body)
    }

    mutating func array<Elements: Sequence>(
        _ elements: Elements, _ each: (inout JSONWriter, Elements.Element) -> Void
    ) {
        container("[", "]") { writer in for element in elements { each(&writer, element) } }
    }

    mutating func string(_ text: String) {
        separate()
        append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { appendEscaped($0) }
        append(UInt8(ascii: "\""))
    }

    /// A number or word that is JSON as it stands.
    mutating func raw(_ text: String) {
        separate()
        var text = text
        text.withUTF8 { append($0) }
    }

    mutating func integer(_ number: Int64) {
        separate()
        if number < 0 { append(UInt8(ascii: "-")) }
        append(digitsOf: number.magnitude)
    }

    mutating func decimal(_ number: ShortDecimal) {
        separate()
        if number.isNegative { append(UInt8(ascii: "-")) }
        append(digitsOf: number.whole)
        guard number.width > 0 else { return }
        append(UInt8(ascii: "."))
        append(digitsOf: number.fraction, width: number.width)
    }

    mutating func null() {
        separate()
        append("null")
    }

    mutating func minutes(_ span: TimeSpan) { decimal(ShortDecimal(minutes: span)) }

    mutating func instant(_ instant: Instant) {
        separate()
        append(UInt8(ascii: "\""))
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: TimeText.length) { text in
            TimeText.write(instant, to: text)
            append(UnsafeBufferPointer(text))
        }
        append(UInt8(ascii: "\""))
    }

    /// The name of the field whose value is written next. Names are our own and need no escaping.
    mutating func key(_ name: StaticString) {
        separate()
        append(UInt8(ascii: "\""))
        append(name)
        append(UInt8(ascii: "\""))
        append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// A name that came from outside, as the JSON string that it is.
    mutating func key(quoted name: String) {
        raw(name)
        append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func separate() {
        if needsComma { append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func container(
        _ opening: Unicode.Scalar, _ closing: Unicode.Scalar, _ body: (inout JSONWriter) -> Void
    ) {
        separate()
        append(UInt8(ascii: opening))
        needsComma = false
        body(&self)
        append(UInt8(ascii: closing))
        needsComma = true
    }

    /// Copies whole stretches between the few bytes that need an escape.
    private mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
        var start = 0
        for (place, byte) in text.enumerated() where Self.needsEscape(byte) {
            append(UnsafeBufferPointer(rebasing: text[start..<place]))
            appendEscape(of: byte)
            start = place + 1
        }
        append(UnsafeBufferPointer(rebasing: text[start...]))
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private mutating func appendEscape(of byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): append(#"\""#)
        case UInt8(ascii: "\\"): append(#"\\"#)
        case 0x08: append(#"\b"#)
        case 0x09: append(#"\t"#)
        case 0x0A: append(#"\n"#)
        case 0x0C: append(#"\f"#)
        case 0x0D: append(#"\r"#)
        default:
            append(byte < 0x10 ? #"\u000"# : #"\u001"#)
            let digit = byte & 0x0F
            append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}

/// Fields by the type of their value; nil is `null`.
extension JSONWriter {
    mutating func field(_ name: StaticString, _ text: String?) {
        key(name)
        if let text { string(text) } else { null() }
    }

    mutating func field<Kind>(_ name: StaticString, _ id: Identifier<Kind>?) { field(name, id?.text) }

    mutating func field(_ name: StaticString, _ number: Int64?) {
        key(name)
        if let number { integer(number) } else { null() }
    }

    mutating func field(_ name: StaticString, _ number: Int?) { field(name, number.map(Int64.init)) }

    mutating func field(_ name: StaticString, _ flag: Bool) {
        key(name)
        separate()
        append(flag ? "true" : "false")
    }

    mutating func field(_ name: StaticString, _ time: Instant?) {
        key(name)
        if let time { instant(time) } else { null() }
    }

    mutating func field(_ name: StaticString, minutes span: TimeSpan?) {
        key(name)
        if let span { minutes(span) } else { null() }
    }

    mutating func field(_ name: StaticString, seconds span: TimeSpan) {
        key(name)
        decimal(ShortDecimal(seconds: span))
    }

    mutating func field(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
        key(name)
        object(body)
    }

    mutating func field<Elements: Sequence>(
        _ name: StaticString, array elements: Elements, _ each: (inout JSONWriter, Elements.Element) -> Void
    ) {
        key(name)
        array(elements, each)
    }
}
