import RoomCore
import Testing

@testable import Contract

@Suite("Writing JSON")
struct JSONWriterTests {
    private func write(_ writer: inout JSONWriter) {
        writer.object { writer in
            writer.field("text", "a\"b\\c\n\u{1}é")
            writer.field("empty", "")
            writer.field("number", Int64.min)
            writer.field("at", Instant(milliseconds: 1_795_954_800_000))
            writer.field("list", array: ["x", "y"]) { $0.string($1) }
        }
    }

    @Test("what does not fit at first is written all the same, wherever the room ends")
    func tooSmall() {
        let whole = JSONWriter.bytes(capacity: 4_096) { write(&$0) }
        #expect(
            whole.text
                == #"{"text":"a\"b\\c\n\u0001é","empty":"","number":-9223372036854775808,"#
                + #""at":"2026-11-29T12:20:00.000Z","list":["x","y"]}"#)
        for capacity in 0...whole.count + 1 {
            #expect(JSONWriter.bytes(capacity: capacity) { write(&$0) } == whole, "\(capacity)")
        }
    }
}
