import Testing

@testable import Service

/// What is wrong is named: the key, where it stands, the value, and what would be right.
struct ConfigurationProblemTests {
    static func problems(
        file: String? = nil, _ environment: [String: String] = [:], flags: [String: String] = [:]
    ) throws -> [String] {
        do {
            _ = try ConfigurationTests.load(file: file, environment, flags: flags)
            return []
        } catch let error as ConfigurationError {
            return error.problems
        }
    }

    @Test(
        "a wrong value is refused and named with its variable",
        arguments: [
            ("OVERTIME_AMQP_PREFIX", ["", "a b", "amq", "amq.x", "é", String(repeating: "x", count: 101)]),
            ("OVERTIME_AMQP_CA", [""]),
            ("OVERTIME_SHARDS", ["0", "257", "-1", "+1", "1.0", "", "one", "99999999999999999999"]),
            ("OVERTIME_AMQP_DECLARE", ["yes", "True", "1", ""]),
            ("OVERTIME_AMQP_REPLIES", ["Default", ""]),
            ("OVERTIME_AMQP_HEARTBEAT", ["0", "0s", "500ms", "1500ms", "11m", "-10s", "10 s", "ten", ""]),
            ("OVERTIME_AMQP_LOG", ["0s", "Off", "999ms", "4000d", ""]),
            ("OVERTIME_AMQP_OPERATORS", [",", "a,,b", "a,"]),
            ("OVERTIME_AMQP_CA", [""]),
            ("OVERTIME_AMQP_LOGIN", ["external", "plain", ""]),
            ("OVERTIME_EVENTS_SOURCE", ["", "a b", "ä", String(repeating: "x", count: 129)]),
            (
                "OVERTIME_STORE",
                ["", "overtime.db", "sqlite:", "sqlite::memory:", "sqlite://x", "sqlite:file:x", "mysql:x"]
            ),
            ("OVERTIME_ROOMS_ADHOC", ["on"]),
            ("OVERTIME_ROOMS_DURATION", ["0", "0m", "367d", "1h90", "m", "-5m", "1e3", "NaN", "5m1h"]),
            ("OVERTIME_ROOMS_RETENTION", ["0", "forever"]),
            ("OVERTIME_IDS_RETENTION", ["0", "1y"]),
            (
                "OVERTIME_HTTP",
                ["", "9464", ":9464", "host:", "host:0", "host:65536", "::1:9464", "a b:1", "http://h:1"]
            ),
            ("OVERTIME_LOG_LEVEL", ["warn", "INFO", ""]),
            ("OVERTIME_LOG_FORMAT", ["xml", ""]),
        ])
    func wrongValues(variable: String, values: [String]) throws {
        let key = try #require(ConfigurationKey.all.first { $0.variable == variable })
        for value in values {
            let lines = try Self.problems([variable: value])
            try #require(lines.count == 1, "\(variable)=\(value): \(lines)")
            #expect(lines[0].hasPrefix("\(key.path) (variable \(variable)): "))
            #expect(lines[0].hasSuffix("is not right; expected \(key.expected)"))
            if !key.isSecret(value) { #expect(lines[0].contains("\"\(value.prefix(80))")) }
        }
    }

    @Test(
        "a malformed URL is refused without being shown",
        arguments: [
            "", "localhost", "http://u:hunter2@h/", "amqp://", "amqp:///v", "amqp://u:hunter2@",
            "amqp://u:hunter2@h:x/v",
            "amqp://u:hunter2@h:0/v", "amqp://u:hunter2@h:70000", "amqp://u:hunter2@h/a/b",
            "amqp://u:hunt er2@h",
            "amqp://u@hunter2@h/v", "amqp://u:p@:5672/v", "amqp://h:/",
        ])
    func wrongURLs(url: String) throws {
        let lines = try Self.problems(["OVERTIME_AMQP_URL": url])
        #expect(lines.count == 1)
        #expect(!lines.joined().contains("hunter2"))
    }

    @Test(
        "a well-formed URL is taken",
        arguments: [
            "amqp://h", "amqp://h/", "amqp://h:5672", "amqps://u:p%40%2f@h:5671/%2f", "amqp://[::1]:5672/v",
            "amqp://[::1]",
        ])
    func rightURLs(url: String) throws {
        #expect(try ConfigurationTests.load(["OVERTIME_AMQP_URL": url]).amqp.url.reveal() == url)
    }

    @Test("PostgreSQL is taken, and its password is shown nowhere")
    func postgres() throws {
        let url = "postgresql://user:hunter2@host:5433/db?connect_timeout=2"
        let configuration = try ConfigurationTests.load(["OVERTIME_STORE": url])
        #expect(configuration.store == .postgresql(Secret(url)))
        let shown = ConfigurationKey.all.first { $0.path == "store" }?.show(configuration)
        #expect(shown == "postgresql://host:5433/db")
        for wrong in ["postgresql://", "postgresql://user:hunter2 @host/db", "postgres:user:hunter2@host/db"]
        {
            let lines = try Self.problems(flags: ["store": wrong])
            #expect(lines.count == 1)
            #expect(lines.first?.hasPrefix("store (flag --store): the value is not right") == true)
            #expect(!lines.joined().contains("hunter2"))
        }
    }

    @Test("all problems of all layers are reported at once, also in values that a later layer covers")
    func allAtOnce() throws {
        let file = """
            {
                amqp: { shards: 0, urll: "amqp://u:hunter2@h", prefix: 5 },
                rooms: "none",
                amqp2: {},
            }
            """
        let lines = try ConfigurationTests.withFile(file) { path in
            try Self.problems(
                file: path,
                ["OVERTIME_SHARD": "2", "OVERTIME_LOG_LEVEL": "loud\nly", "OVERTIME_SHARDS": "2"],
                flags: ["log.levle": "info", "http": "x"]
            ).map { $0.replacing(path, with: "F") }
        }
        #expect(
            lines == [
                "amqp.shards (file F line 2): \"0\" is not right; expected a whole number from 1 to 256",
                "amqp.urll (file F line 2): unknown key; did you mean amqp.url?",
                "amqp.prefix (file F line 2): the number 5 is not right; expected 1 to 100 letters, digits, dots, "
                    + "hyphens or underscores, not beginning with amq",
                "rooms (file F line 3): the text \"none\" is not right; expected an object of keys",
                "amqp2 (file F line 4): unknown key; did you mean amqp?",
                "log.level (variable OVERTIME_LOG_LEVEL): \"loud?ly\" is not right; expected debug, info, warning or "
                    + "error",
                "OVERTIME_SHARD (environment): unknown variable; did you mean OVERTIME_SHARDS?",
                "http (flag --http): \"x\" is not right; expected HOST:PORT such as 127.0.0.1:9464 or [::1]:9464, or "
                    + "off",
                "log.levle (flag): unknown key; did you mean log.level?",
            ])
    }

    @Test("variables of tests, of the file's name and of other programs are no keys")
    func otherVariables() throws {
        #expect(
            try Self.problems([
                "OVERTIME_TEST_AMQP_URL": "x", "OVERTIME_BIN": "x", "OVERTIME": "x", "overtime_x": "x",
                "PATH": "",
            ]) == [])
    }

    @Test("a file that cannot be read is named with the reason")
    func unreadable() throws {
        #expect(
            try Self.problems(file: "/nowhere/o.json5")
                == ["file /nowhere/o.json5: cannot be read: No such file or directory"])
        #expect(try Self.problems(file: "/") == ["file /: cannot be read: Is a directory"])
        #expect(
            try Self.problems(file: "/dev/zero") == [
                "file /dev/zero: cannot be read: longer than 1048576 bytes"
            ])
        #expect(try Self.problems(file: "").count == 1)
    }

    @Test(
        "values of a wrong type are refused, null too",
        arguments: [
            "{ amqp: { url: 5 } }", "{ amqp: { shards: '1' } }", "{ amqp: { declare: 'true' } }",
            "{ amqp: { declare: 1 } }", "{ amqp: { shards: null } }", "{ amqp: { shards: 1.5 } }",
            "{ amqp: { shards: 1e2 } }", "{ amqp: { operators: [1] } }", "{ amqp: { operators: ['a,b'] } }",
            "{ amqp: { operators: [''] } }", "{ rooms: { duration: true } }", "{ rooms: { duration: -1 } }",
            "{ http: null }", "{ store: {} }", "{ amqp: null }", "[]", "5",
            "{ 'amqp.url': 'amqp://h', x: 1 }",
        ])
    func wrongTypes(text: String) throws {
        let lines = try ConfigurationTests.withFile(text) { try Self.problems(file: $0) }
        #expect(lines.count == 1, "\(lines)")
    }

    @Test(
        "a number in the file means minutes, also below one",
        arguments: [
            ("60", 3_600_000), ("0.5", 30_000), (".25", 15_000), ("+2", 120_000), ("0x10", 960_000),
            ("1.", 60_000),
        ])
    func numbers(text: String, milliseconds: Int64) throws {
        let file = "{ rooms: { duration: \(text) } }"
        let loaded = try ConfigurationTests.withFile(file) { try ConfigurationTests.load(file: $0) }
        #expect(loaded.rooms.durationMilliseconds == milliseconds)
    }

    @Test("a secret's file that cannot serve is named, and what it holds is not shown")
    func wrongSecretFiles() throws {
        let missing = try Self.problems(["OVERTIME_AMQP_URL_FILE": "/nonexistent/url"])
        #expect(
            missing == [
                "amqp.url (variable OVERTIME_AMQP_URL_FILE, file /nonexistent/url): cannot be read: "
                    + "No such file or directory"
            ])
        for content in ["", "\n", "hunter2", "amqp://u:hunter2@h/a/b", "amqp://u:hunter2@h\n\n"] {
            try ConfigurationTests.withFile(content) { path in
                for variable in ["OVERTIME_AMQP_URL_FILE", "OVERTIME_STORE_FILE"] {
                    let lines = try Self.problems([variable: path])
                    #expect(lines.count == 1)
                    #expect(lines[0].contains("\(variable), file "))
                    #expect(lines[0].contains("the value is not right; expected "))
                    #expect(!lines[0].contains("hunter2"))
                }
            }
        }
        try ConfigurationTests.withFile("amqp://u:hunter2@h") { path in
            let lines = try Self.problems(["OVERTIME_AMQP_URL": "amqp://h", "OVERTIME_AMQP_URL_FILE": path])
            #expect(
                lines == [
                    "amqp.url: OVERTIME_AMQP_URL and OVERTIME_AMQP_URL_FILE are both set; set one of them"
                ])
        }
        #expect(
            try Self.problems(["OVERTIME_AMQP_PREFIX_FILE": "/x"])[0].hasPrefix(
                "OVERTIME_AMQP_PREFIX_FILE (environment): unknown variable"))
    }
}
