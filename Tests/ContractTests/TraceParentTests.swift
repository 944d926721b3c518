import AMQP
import Contract
import Testing

@Suite("The header traceparent")
struct TraceParentTests {
    static let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test("is carried on as it came")
    func valid() throws {
        let trace = try #require(TraceParent(Properties(headers: ["traceparent": .text(Self.text)])))
        #expect(trace.text == Self.text && trace.traceID == "0af7651916cd43dd8448eb211c80319c")
    }

    @Test(
        "is as good as none where it is not valid",
        arguments: [
            "", "-", "---", "00", Self.text + " ", " " + Self.text, Self.text + "-00", Self.text.uppercased(),
            "ff" + Self.text.dropFirst(2), "01" + Self.text.dropFirst(2), "0" + Self.text,
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c8031-9cb7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\0",
        ])
    func invalid(text: String) {
        #expect(TraceParent(text) == nil)
    }

    @Test(
        "is as good as none where it is no text",
        arguments: [
            FieldValue.int64(1), .void, .bytes(Array(text.utf8)), .string([0xFF]), .array([.text(text)]),
        ])
    func otherTypes(value: FieldValue) {
        #expect(TraceParent(Properties(headers: ["traceparent": value])) == nil)
        #expect(TraceParent(Properties()) == nil)
    }
}
