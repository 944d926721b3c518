internal import RoomCore

/// Writes canonical JSON into one buffer: no spaces, fields in the order of the calls, only what must be
/// escaped is escaped. Equal calls make equal bytes, which is what lets copies of an event be identical.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    /// Whether the next value in this container follows another one.
    private var needsComma = false

    init(capacity: Int = 512) { bytes.reserveCapacity(capacity) }

    /// The bytes of one object.
    static func object(capacity: Int = 512, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter(capacity: capacity)
        writer.object(body)
        return writer.bytes
    }

    /// How many bytes a text takes once written.
    static func size(ofString text: String) -> Int {
        var writer = JSONWriter(capacity: text.utf8.count + 2)
        writer.string(text)
        return writer.bytes.count
    }

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
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { appendEscaped($0) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// A number or word that is JSON as it stands.
    mutating func raw(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
    }

    mutating func integer(_ number: Int64) { raw(String(number)) }
    mutating func null() { raw("null") }
    mutating func minutes(_ span: TimeSpan) { raw(NumberText.minutes(span)) }

    mutating func instant(_ instant: Instant) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        TimeText.append(instant, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// The name of the field whose value is written next. Names are our own and need no escaping.
    mutating func key(_ name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// A name that came from outside, as the JSON string that it is.
    mutating func key(quoted name: String) {
        raw(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func container(
        _ opening: Unicode.Scalar, _ closing: Unicode.Scalar, _ body: (inout JSONWriter) -> Void
    ) {
        separate()
        bytes.append(UInt8(ascii: opening))
        needsComma = false
        body(&self)
        bytes.append(UInt8(ascii: closing))
        needsComma = true
    }

    /// Copies whole stretches between the few bytes that need an escape.
    private mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
        var rest = text[...]
        while let place = rest.firstIndex(where: Self.needsEscape) {
            bytes.append(contentsOf: rest[..<place])
            appendEscape(of: rest[place])
            rest = rest[(place + 1)...]
        }
        bytes.append(contentsOf: rest)
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private mutating func appendEscape(of byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): bytes.append(contentsOf: #"\""#.utf8)
        case UInt8(ascii: "\\"): bytes.append(contentsOf: #"\\"#.utf8)
        case 0x08: bytes.append(contentsOf: #"\b"#.utf8)
        case 0x09: bytes.append(contentsOf: #"\t"#.utf8)
        case 0x0A: bytes.append(contentsOf: #"\n"#.utf8)
        case 0x0C: bytes.append(contentsOf: #"\f"#.utf8)
        case 0x0D: bytes.append(contentsOf: #"\r"#.utf8)
        default:
            bytes.append(contentsOf: byte < 0x10 ? #"\u000"#.utf8 : #"\u001"#.utf8)
            let digit = byte & 0x0F
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
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
        if let number { raw(String(number)) } else { null() }
    }

    mutating func field(_ name: StaticString, _ number: Int?) { field(name, number.map(Int64.init)) }

    mutating func field(_ name: StaticString, _ flag: Bool) {
        key(name)
        raw(flag ? "true" : "false")
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
        raw(NumberText.seconds(span))
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
