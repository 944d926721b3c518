import AMQP
import Contract
import Testing

@Suite("Strict JSON")
struct StrictJSONTests {
    static let absence: Comment = "the JSON test suite must lie in ../shared/data/json-test-suite"

    @Test("the suite's 188 wrong files are refused", .enabled(if: JSONSuiteFiles.areThere, absence))
    func wrongFiles() {
        let files = JSONSuiteFiles.beginning("n_")
        #expect(files.count == 188)
        let parsed = files.filter { if case .success = StrictJSON.parse($0.bytes) { true } else { false } }
        #expect(parsed.map(\.name) == [])
    }

    @Test(
        "of the suite's 95 right files four are refused, by design",
        .enabled(if: JSONSuiteFiles.areThere, absence))
    func rightFiles() {
        let files = JSONSuiteFiles.beginning("y_")
        #expect(files.count == 95)
        let refused = files.filter { if case .failure = StrictJSON.parse($0.bytes) { true } else { false } }
        #expect(
            refused.map(\.name) == [
                "y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json",
                "y_object_escaped_null_in_key.json", "y_string_null_escape.json",
            ])
    }

    @Test("no file of the suite is a command", .enabled(if: JSONSuiteFiles.areThere, absence))
    func noCommands() {
        for file in JSONSuiteFiles.all {
            let result = CommandDecoder.decode(body: file.bytes, properties: Properties())
            guard case .failure(let invalid) = result else {
                Issue.record("\(file.name) was taken for a command")
                continue
            }
            #expect(invalid.detail.utf8.count <= 512)
            #expect(!invalid.detail.unicodeScalars.contains { $0.value < 0x20 }, "\(file.name)")
        }
    }

    @Test(
        "what Jansson or others take too kindly is refused, and the sentence says what and where",
        arguments: [
            ("", JSONProblem.Kind.empty, "empty"),
            (" ", .malformed, "ends too early at line 1, column 1 (byte 1)"),
            ("\u{FEFF}{}", .byteOrderMark, "byte-order mark"),
            ("{}\0", .nulByte, "NUL byte at byte 2"),
            ("{\"a\0\":1}", .nulByte, "NUL byte at byte 3"),
            (#"{"a":"\u0000"}"#, .invalidText, "NUL"),
            (#"{"\u0000":1}"#, .invalidText, "NUL"),
            (#"{"a":1,"a":1}"#, .duplicateKey, "same key twice"),
            (#"{"a":1,"\u0061":2}"#, .duplicateKey, "same key twice"),
            (#"{"a":{"b":1,"b":2}}"#, .duplicateKey, "same key twice"),
            (#"["\uD800"]"#, .malformed, "line 1"),
            (#"["\uDC00"]"#, .malformed, "line 1"),
            (#"["\uD800\u0041"]"#, .malformed, "line 1"),
            ("{} {}", .malformed, "goes on after"),
            ("{}x", .malformed, "goes on after"),
            ("[1,]", .malformed, "line 1, column 4"),
            ("{\"a\":1,}", .malformed, "line 1"),
            ("{'a':1}", .malformed, "line 1"),
            ("{a:1}", .malformed, "line 1"),
            ("[1 2]", .malformed, "line 1"),
            ("// no\n{}", .malformed, "line 1"),
            ("[01]", .malformed, "line 1"),
            ("[+1]", .malformed, "line 1"),
            ("[.5]", .malformed, "line 1"),
            ("[1.]", .malformed, "line 1"),
            ("[NaN]", .malformed, "line 1"),
            ("[Infinity]", .malformed, "line 1"),
            ("[1,5", .malformed, "ends too early"),
            ("[\"\u{1}\"]", .malformed, "line 1"),
            ("[\"a\nb\"]", .malformed, "line 1"),
            ("[9223372036854775808]", .numberOutOfRange, "does not fit"),
            ("[-9223372036854775809]", .numberOutOfRange, "does not fit"),
            ("[1e400]", .numberOutOfRange, "does not fit"),
            ("[-1e400]", .numberOutOfRange, "does not fit"),
        ] as [(String, JSONProblem.Kind, String)])
    func refused(text: String, kind: JSONProblem.Kind, fragment: String) throws {
        let problem = try #require(findProblem(Array(text.utf8)))
        #expect(problem.kind == kind, "\(problem.detail)")
        #expect(problem.detail.contains(fragment), "\(problem.detail)")
    }

    @Test(
        "bytes that are not UTF-8 are refused",
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xE0, 0x80, 0x80, 0x22],
            [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], [0x22, 0xC3, 0x22],
            [0xFE, 0xFF, 0x5B, 0x5D], [0xFF, 0xFE, 0x5B, 0x5D],
        ] as [[UInt8]])
    func invalidText(bytes: [UInt8]) throws {
        #expect(try #require(findProblem(bytes)).kind == .invalidText)
    }

    @Test("sixteen levels parse and seventeen do not, brackets in strings do not count")
    func depth() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        #expect(findProblem(nested(16)) == nil)
        let problem = try #require(findProblem(nested(17)))
        #expect(problem.kind == .tooDeep)
        #expect(problem.detail.contains("deeper than 16 levels at byte 16"))
        #expect(findProblem(Array(#"["[[[[[[[[[[[[[[[[[[[[[[\"[[[[[[[\\"]"#.utf8)) == nil)
        let objects = String(repeating: #"{"a":"#, count: 17) + "1" + String(repeating: "}", count: 17)
        #expect(findProblem(Array(objects.utf8))?.kind == .tooDeep)
    }

    @Test("a million opening brackets cost a refusal and no stack")
    func manyBrackets() throws {
        let bytes = [UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)
        #expect(try #require(findProblem(bytes)).kind == .tooLarge)
        guard case .failure(let problem) = StrictJSON.parse(bytes, maximumBytes: .max) else {
            Issue.record("parsed")
            return
        }
        #expect(problem.kind == .tooDeep)
    }

    @Test("64 KiB parse and one byte more does not")
    func size() {
        func padded(_ count: Int) -> [UInt8] { Array(("{}" + String(repeating: " ", count: count - 2)).utf8) }
        #expect(findProblem(padded(65_536)) == nil)
        #expect(findProblem(padded(65_537))?.kind == .tooLarge)
    }

    @Test(
        "values keep their type",
        arguments: [
            ("2", JSONValue.integer(2)), ("2.0", .real(2)), ("2e0", .real(2)), ("-0", .integer(0)),
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("1e-400", .real(0)), ("0.1", .real(0.1)), ("true", .bool(true)), ("null", .null),
            (#""\u00e9\ud83d\ude00""#, .string("é😀")), ("[]", .array([])),
            (
                #"{"b":1,"a":[2]}"#,
                .object([JSONMember("b", .integer(1)), JSONMember("a", .array([.integer(2)]))])
            ),
        ] as [(String, JSONValue)])
    func values(text: String, value: JSONValue) {
        #expect(StrictJSON.parse(Array(text.utf8)) == .success(value))
    }

    @Test("a key is found by its bytes, not by what Unicode calls equal")
    func keysByBytes() {
        let kelvin = JSONValue.object([JSONMember("\u{212A}", .null)])
        #expect(kelvin["K"] == nil)
        #expect(kelvin["\u{212A}"] == .null)
    }

    private func findProblem(_ bytes: [UInt8]) -> JSONProblem? {
        if case .failure(let problem) = StrictJSON.parse(bytes) { problem } else { nil }
    }
}
