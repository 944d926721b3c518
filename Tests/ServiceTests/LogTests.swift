import Glibc
import Testing

@testable import Service

struct LogTests {
    private struct FixedClock: WallClock {
        func nowMilliseconds() -> Int64 { 1_795_956_000_123 }
    }

    /// What a log writes into a pipe while the body runs.
    private func written(
        _ format: Log.Format, level: Log.Level = .debug, colour: Bool = false, shortTime: Bool = true,
        _ body: (Log) -> Void
    ) throws -> String {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        body(
            Log(
                component: "worker", level: level, format: format, colour: colour, shortTime: shortTime,
                descriptor: ends[1], clock: FixedClock()))
        close(ends[1])
        defer { close(ends[0]) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &buffer, buffer.count)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }

    @Test("a JSON line has time, level, component, message and the fields in their order")
    func json() throws {
        let line = try written(.json) { log in
            log.info(
                "phrase", ["room": "demo", "sequence": 7, "late": 0.5, "final": true, "by": String?.none])
        }
        #expect(
            line == "{\"time\":\"2026-11-29T12:40:00.123Z\",\"level\":\"info\",\"component\":\"worker\","
                + "\"message\":\"phrase\",\"room\":\"demo\",\"sequence\":7,\"late\":0.5,\"final\":true,\"by\":null}\n"
        )
    }

    @Test("a text line is aligned, and quotes only what needs it")
    func text() throws {
        let line = try written(.text) { log in
            log.named("scheduler").warning(
                "broker gone", ["host": "a b", "tries": 2, "why": "", "ok": false])
        }
        #expect(line == "12:40:00.123 warning scheduler broker gone host=\"a b\" tries=2 why=\"\" ok=false\n")
        #expect(
            try written(.text, shortTime: false) { $0.info("up") }
                == "2026-11-29T12:40:00.123Z info  worker    up\n")
        let coloured = try written(.text, colour: true) { $0.error("down", ["a": 1]) }
        #expect(coloured.contains("\u{1B}[31merror\u{1B}[0m"))
    }

    @Test("no value forges a line, moves a cursor or breaks JSON", arguments: Log.Format.allCases)
    func escaping(format: Log.Format) throws {
        let evil = "a\n{\"x\":1}\r\t\u{0}\u{1B}[2J\u{7F}\u{9B}\u{2028}\u{202E}\\ü😀"
        let line = try written(format) { $0.info("phrase", [evil: evil]) }
        #expect(line.utf8.filter { $0 == 0x0A }.count == 1 && line.hasSuffix("\n"))
        #expect(
            line.dropLast().unicodeScalars.allSatisfy {
                $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value)
            })
        #expect(line.contains("a\\n{\\\"x\\\":1}\\r\\t\\u0000\\u001b[2J\\u007f\\u009b\\u2028\\u202e\\\\ü😀"))
    }

    @Test("numbers that JSON cannot say are texts, and long texts are cut")
    func bounds() throws {
        let line = try written(.json) { log in
            log.info(
                "phrase",
                ["nan": Double.nan, "big": UInt64.max, "long": String(repeating: "ü", count: 50_000)])
        }
        #expect(line.contains("\"nan\":\"nan\",\"big\":\"18446744073709551615\""))
        #expect(line.hasSuffix("ü…\"}\n"))
        #expect(line.utf8.count < 2300)
    }

    @Test("lines below the level are not written and their fields not built")
    func levels() throws {
        var built = 0
        func fields() -> LogFields {
            built += 1
            return [:]
        }
        let lines = try written(.text, level: .warning) { log in
            log.debug("a", fields())
            log.info("b", fields())
            log.warning("c", fields())
            log.error("d", fields())
        }
        #expect(lines.split(separator: "\n").count == 2)
        #expect(built == 2)
    }

    @Test("a descriptor that cannot be written stops nothing")
    func unwritable() {
        Log(component: "worker", format: .json, descriptor: -1).error("lost")
        let full = open("/dev/full", O_WRONLY)
        defer { close(full) }
        Log(component: "worker", format: .json, descriptor: full).error("lost")
    }

    @Test("a pipe that nobody reads stops nothing, and what was lost is counted once somebody does")
    func unread() throws {
        var pipes: [Int32] = [0, 0]
        try #require(pipe(&pipes) == 0)
        defer { pipes.forEach { close($0) } }
        let log = Log(component: "worker", format: .json, descriptor: pipes[1])
        let text = String(repeating: "x", count: 1_000)
        for _ in 0..<200 { log.info("line", ["text": text]) }

        func read() -> String {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = Glibc.read(pipes[0], &bytes, bytes.count)
            return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
        }
        let before = read().split(separator: "\n").count
        #expect(before > 30 && before < 200)
        log.info("again")
        let after = read().split(separator: "\n")
        #expect(after.count == 2)
        let said = #""message":"log lines were lost: nobody read them","count":\#(200 - before)}"#
        #expect(after.first?.hasSuffix(said) == true)
        #expect(after.last?.contains("again") == true)
    }

    @Test("lines of one moment are written together, whole and in order")
    func together() throws {
        var pipes: [Int32] = [0, 0]
        try #require(pipe(&pipes) == 0)
        defer { close(pipes[0]) }
        // F_SETPIPE_SZ, room for all of them: nobody reads meanwhile.
        try #require(fcntl(pipes[1], 1031, 1 << 20) >= 1 << 20)
        let log = Log(component: "worker", format: .json, descriptor: pipes[1])
        log.together { lines in
            for number in 0..<2_000 {
                lines.info("event", ["number": number])
                lines.debug("not written", ["number": number])
            }
        }
        close(pipes[1])
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = Glibc.read(pipes[0], &piece, piece.count), count > 0 {
            text += piece.prefix(count)
        }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 2_000)
        for (number, line) in lines.enumerated() {
            #expect(line.hasPrefix("{\"time\":") && line.hasSuffix("\"number\":\(number)}"))
        }
    }
}
