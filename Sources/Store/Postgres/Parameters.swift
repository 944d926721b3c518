import RoomCore

/// The parameters of one statement in PostgreSQL's binary format: what is meant is what arrives, whatever it contains.
///
/// Lists become arrays, so that a statement takes a batch of any size. Names are byte strings (bytea): they compare byte
/// by byte, as in the program, whatever the database's collation, and none is too odd to be stored.
struct Parameters {
    private(set) var bytes: [UInt8] = []
    /// Where each parameter lies in `bytes`; nil for NULL.
    private(set) var ranges: [Range<Int>?] = []

    init() {}

    private enum ElementType {
        static let bytea: Int32 = 17
        static let int8: Int32 = 20
        static let text: Int32 = 25
    }

    // MARK: Single values

    mutating func add(_ value: Int64) { parameter { $0.put(value) } }
    mutating func add(_ value: Int) { add(Int64(value)) }
    mutating func add(_ text: String) { parameter { $0.bytes.append(contentsOf: text.utf8) } }
    mutating func add<Kind>(_ name: Identifier<Kind>) { add(name.text) }
    mutating func add(bytes value: [UInt8]) { parameter { $0.bytes.append(contentsOf: value) } }

    mutating func add(_ text: String?) {
        if let text { add(text) } else { addNull() }
    }

    mutating func addNull() { ranges.append(nil) }

    // MARK: Lists

    mutating func add(_ values: some Collection<Int64>) {
        array(of: ElementType.int8, count: values.count) { parameters in
            for value in values { parameters.element(value) }
        }
    }

    mutating func add(_ values: some Collection<Int64?>) {
        array(of: ElementType.int8, count: values.count, hasNull: true) { parameters in
            for value in values { parameters.element(value) }
        }
    }

    mutating func add<Kind>(_ names: some Collection<Identifier<Kind>>) {
        array(of: ElementType.bytea, count: names.count) { parameters in
            for name in names { parameters.element(name.text) }
        }
    }

    mutating func add(_ values: some Collection<[UInt8]>) {
        array(of: ElementType.bytea, count: values.count) { parameters in
            for value in values {
                parameters.put(Int32(truncatingIfNeeded: value.count))
                parameters.bytes.append(contentsOf: value)
            }
        }
    }

    /// Texts as byte strings, which may be nil.
    mutating func addBytes(_ texts: some Collection<String?>) {
        array(of: ElementType.bytea, count: texts.count, hasNull: true) { parameters in
            for text in texts { parameters.element(text) }
        }
    }

    mutating func addTexts(_ texts: some Collection<String?>) {
        array(of: ElementType.text, count: texts.count, hasNull: true) { parameters in
            for text in texts { parameters.element(text) }
        }
    }

    /// Byte strings, or the bytes of texts, which may be nil.
    mutating func addOptional(_ values: some Collection<[UInt8]?>, areTexts: Bool) {
        let type = areTexts ? ElementType.text : ElementType.bytea
        array(of: type, count: values.count, hasNull: true) { parameters in
            for value in values {
                parameters.put(value.map { Int32(truncatingIfNeeded: $0.count) } ?? -1)
                parameters.bytes.append(contentsOf: value ?? [])
            }
        }
    }

    // MARK: Bytes

    private mutating func parameter(_ body: (inout Parameters) -> Void) {
        let start = bytes.count
        body(&self)
        ranges.append(start..<bytes.count)
    }

    private mutating func array(
        of type: Int32, count: Int, hasNull: Bool = false, _ body: (inout Parameters) -> Void
    ) {
        parameter { parameters in
            parameters.put(Int32(count == 0 ? 0 : 1))
            parameters.put(Int32(hasNull ? 1 : 0))
            parameters.put(type)
            guard count > 0 else { return }
            parameters.put(Int32(truncatingIfNeeded: count))
            parameters.put(Int32(1))
            body(&parameters)
        }
    }

    private mutating func element(_ value: Int64?) {
        guard let value else { return put(Int32(-1)) }
        put(Int32(8))
        put(value)
    }

    private mutating func element(_ text: String?) {
        guard let text else { return put(Int32(-1)) }
        put(Int32(truncatingIfNeeded: text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func put<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
}
