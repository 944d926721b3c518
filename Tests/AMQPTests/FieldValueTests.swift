import Testing

@testable import AMQP

@Suite struct FieldValueTests {
    @Test("a table finds by name and keeps its order")
    func lookUp() {
        var table: Table = ["a": .bool(true), "b": .text("x"), "a": .int8(1)]
        #expect(table["a"] == .bool(true))
        #expect(table["c"] == nil)
        table["c"] = .int64(-5)
        table["b"] = .void
        #expect(table.entries.map(\.key) == ["a", "b", "a", "c"])
        #expect(table["c"]?.integer == -5)
        table["a"] = nil
        #expect(table.entries.map(\.key) == ["b", "c"])
    }

    @Test("short strings hold 255 bytes of anything")
    func shortStrings() {
        #expect(ShortString(String(repeating: "x", count: 255)) != nil)
        #expect(ShortString(String(repeating: "x", count: 256)) == nil)
        #expect(ShortString(String(repeating: "ü", count: 128)) == nil)
        #expect(ShortString(bytes: [0xFF])?.string == nil)
        #expect(ShortString(bytes: [0xFF, 0x0A])?.description == "\u{FFFD} ")
        #expect(ShortString("ü").string == "ü")
    }

    private func nested(_ depth: Int, array: Bool) -> Table {
        var value = FieldValue.void
        for _ in 1..<depth { value = array ? .array([value]) : .table(["n": value]) }
        return ["n": value]
    }

    @Test("what nests deeper than 64 cannot be sent", arguments: [true, false])
    func depth(array: Bool) {
        #expect(nested(64, array: array).encodedSize() != nil)
        #expect(nested(65, array: array).encodedSize() == nil)
    }

    @Test("properties that fill more than a frame do not fit")
    func fit() {
        var properties = Properties()
        properties.headers = ["k": .bytes([UInt8](repeating: 0, count: 131_072 - 20 - 13))]
        #expect(properties.encodedSize == 131_072 - 20)
        #expect(properties.fit(frameMaximum: 131_072))
        properties.priority = 1
        #expect(!properties.fit(frameMaximum: 131_072))
    }
}
