import Testing

@testable import Service

struct JSON5Tests {
    @Test("comments, bare and single-quoted names, trailing commas and all values are read")
    func everything() throws {
        let text = """
            // first
            { a: 1, 'b': [true, false, null,], /* more
            lines */ "c": { $d_1: 'it\\'s "x"', ü: "\\u00fc\\ud83d\\ude00\\n", }, e: -.5, f: "two \\
            lines", }
            """
        #expect(
            try JSON5.parse(Array(text.utf8))
                == .object([
                    .init(name: "a", line: 2, value: .number("1")),
                    .init(name: "b", line: 2, value: .array([.bool(true), .bool(false), .null])),
                    .init(
                        name: "c", line: 3,
                        value: .object([
                            .init(name: "$d_1", line: 3, value: .string("it's \"x\"")),
                            .init(name: "ü", line: 3, value: .string("ü😀\n")),
                        ])),
                    .init(name: "e", line: 3, value: .number("-0.5")),
                    .init(name: "f", line: 3, value: .string("two lines")),
                ]))
    }

    @Test(
        "what is malformed is refused with its line",
        arguments: [
            ("", 1, "ends where a value is missing"),
            ("{\na: 1,\na: 2 }", 3, "the key a stands there twice"),
            ("{ a: 1, 'a': 2 }", 1, "the key a stands there twice"),
            ("{\n\na: 1 b: 2 }", 3, "a comma or } is missing"),
            ("{ a 1 }", 1, "a colon is missing after the key a"),
            ("{ a: 1", 1, "a comma or } is missing"),
            ("{ a: 1,", 1, "ends where } is missing"),
            ("{ , }", 1, "a key is missing"),
            ("{ 1a: 1 }", 1, "a key is missing"),
            ("{ a: }", 1, "a value is missing"),
            ("[1 2]", 1, "a comma or ] is missing"),
            ("{} {}", 1, "something follows the end of the document"),
            ("\n'abc", 2, "ends inside a text"),
            ("'a\nb'", 1, "a text is not closed on its line"),
            ("{ /* a\n b", 1, "a comment is not closed"),
            ("{ / }", 1, "a lone slash"),
            ("{ a: yes }", 1, "yes is no value; texts stand in quotes"),
            ("{ a: Infinity }", 1, "Infinity is no value; texts stand in quotes"),
            ("{ a: 007 }", 1, "007 is no value; texts stand in quotes"),
            ("{ a: 0x }", 1, "0x is no value; texts stand in quotes"),
            ("{ a: 1.2.3 }", 1, "1.2.3 is no value; texts stand in quotes"),
            ("{ a: . }", 1, ". is no value; texts stand in quotes"),
            ("{ a: - }", 1, "- is no value; texts stand in quotes"),
            ("'\\ud800'", 1, "half a surrogate pair"),
            ("'\\ud800\\u0041'", 1, "half a surrogate pair"),
            ("'\\udc00'", 1, "half a surrogate pair"),
            ("'\\u12'", 1, "\\u needs four hexadecimal digits"),
            ("'\\u+123'", 1, "\\u needs four hexadecimal digits"),
            ("'\\x41'", 1, "a text holds an unknown escape"),
            (String(repeating: "[", count: 100_000), 1, "nested deeper than 16"),
        ])
    func malformed(text: String, line: Int, reason: String) {
        #expect(throws: JSON5.Failure(line: line, reason: reason)) { try JSON5.parse(Array(text.utf8)) }
    }

    @Test("bytes that are not UTF-8 are refused")
    func notUTF8() {
        #expect(throws: JSON5.Failure(line: 1, reason: "is not UTF-8")) {
            try JSON5.parse([0x7B, 0xFF, 0x7D])
        }
    }

    @Test("no cut or changed byte of a document traps the reader")
    func noTrap() {
        let text = Array("{a:[1,-.5,0x1F,'x\\u0041\\ud83d\\ude00'],/*c*/b:{c:true},//d\n}".utf8)
        var parsed = 0
        for end in 0...text.count where (try? JSON5.parse(Array(text[..<end]))) != nil { parsed += 1 }
        for index in text.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = text
                changed[index] = byte
                if (try? JSON5.parse(changed)) != nil { parsed += 1 }
            }
        }
        #expect(parsed > 0)
    }
}
