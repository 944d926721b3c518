import FoundationEssentials
import Testing

@testable import Service

/// Layers, and the sample file that documents them.
struct ConfigurationTests {
    private static let sample = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "config/overtime.json5").path

    /// A configuration file that lives as long as the body.
    static func withFile<Value>(_ text: String, _ body: (String) throws -> Value) throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "service-\(RandomToken.make())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "overtime.json5").path
        try Data(text.utf8).write(to: URL(filePath: path))
        return try body(path)
    }

    static func load(
        file: String? = nil, _ environment: [String: String] = [:], flags: [String: String] = [:]
    ) throws -> Configuration {
        try Configuration.load(flags: flags, environment: environment, configPath: file, isTerminal: false)
    }

    @Test("without any layer the defaults of the contract are in force")
    func defaults() throws {
        let configuration = try Self.load()
        #expect(configuration == Configuration())
        #expect(configuration.amqp.url.reveal() == "amqp://guest:guest@127.0.0.1:5672/%2f")
        #expect(configuration.amqp.logRetentionMilliseconds == 604_800_000)
        #expect(configuration.store == .sqlite(path: "overtime.db"))
        #expect(configuration.rooms.durationMilliseconds == 3_600_000)
        #expect(configuration.rooms.retentionMilliseconds == 2_592_000_000)
        #expect(configuration.ids.retentionMilliseconds == 86_400_000)
        #expect(configuration.http == nil)
    }

    @Test("the sample file equals the defaults, with and without a terminal", arguments: [true, false])
    func sampleEqualsDefaults(isTerminal: Bool) throws {
        let loaded = try Configuration.load(
            flags: [:], environment: [:], configPath: Self.sample, isTerminal: isTerminal)
        #expect(loaded == Configuration(isTerminal: isTerminal))
        #expect(loaded.log.format == (isTerminal ? .text : .json))
    }

    @Test("the sample file documents every key with its default and its variable")
    func sampleIsComplete() throws {
        let text = try String(contentsOf: URL(filePath: Self.sample), encoding: .utf8)
        let document = try JSON5.parse(Array(text.utf8))
        for key in ConfigurationKey.all {
            let value = try #require(Self.member(key.path, of: document), "\(key.path) is missing")
            switch value {
            case .string(let text), .number(let text): #expect(text == key.defaultText, "\(key.path)")
            case .bool(let flag): #expect("\(flag)" == key.defaultText, "\(key.path)")
            case .array(let elements): #expect(elements.isEmpty && key.defaultText.isEmpty, "\(key.path)")
            default: Issue.record("\(key.path) is \(value.kind)")
            }
            #expect(text.contains(key.variable), "\(key.variable) is not named")
        }
    }

    private static func member(_ path: String, of document: JSON5) -> JSON5? {
        path.split(separator: ".").reduce(document as JSON5?) { value, name in
            guard case .object(let members) = value else { return nil }
            return members.first { $0.name == name }?.value
        }
    }

    @Test("the default text of every key means the default", arguments: ConfigurationKey.all.map(\.path))
    func defaultTextMeansDefault(path: String) throws {
        let key = try #require(ConfigurationKey.all.first { $0.path == path })
        var configuration = Configuration()
        #expect(key.apply(key.defaultText, &configuration))
        #expect(configuration == Configuration())
        #expect(ConfigurationKey.named(flag: key.flag)?.path == path)
    }

    @Test("each layer covers the one below: file, environment, flags")
    func layers() throws {
        let file = "{ amqp: { prefix: 'file', shards: 2, heartbeat: '20s' }, rooms: { duration: 5 } }"
        try Self.withFile(file) { path in
            let environment = ["OVERTIME_AMQP_PREFIX": "variable", "OVERTIME_SHARDS": "3", "HOME": "/"]
            let configuration = try Self.load(file: path, environment, flags: ["amqp.prefix": "flag"])
            #expect(configuration.amqp.prefix == "flag")
            #expect(configuration.amqp.shards == 3)
            #expect(configuration.amqp.heartbeatSeconds == 20)
            #expect(configuration.rooms.durationMilliseconds == 300_000)
            #expect(configuration.ids == Configuration().ids)
        }
    }

    @Test("OVERTIME_CONFIG names the file, a flag names another, and an empty variable none")
    func fileNames() throws {
        try Self.withFile("{ amqp: { prefix: 'one' } }") { one in
            try Self.withFile("{ amqp: { prefix: 'two' } }") { two in
                let named = try Self.load(["OVERTIME_CONFIG": one])
                let both = try Self.load(file: two, ["OVERTIME_CONFIG": one])
                let none = try Self.load(["OVERTIME_CONFIG": ""])
                #expect([named, both, none].map(\.amqp.prefix) == ["one", "two", "overtime"])
            }
        }
    }

    @Test("every key can be set by its variable")
    func variables() throws {
        let configuration = try Self.load([
            "OVERTIME_AMQP_URL": "amqps://u:p@broker/vhost", "OVERTIME_AMQP_PREFIX": "p",
            "OVERTIME_SHARDS": "4",
            "OVERTIME_AMQP_DECLARE": "false", "OVERTIME_AMQP_REPLIES": "exchange",
            "OVERTIME_AMQP_HEARTBEAT": "5s", "OVERTIME_AMQP_LOG": "off",
            "OVERTIME_AMQP_OPERATORS": "ops, backend", "OVERTIME_AMQP_CA": "/etc/ca.pem",
            "OVERTIME_AMQP_CERTIFICATE": "c.pem", "OVERTIME_AMQP_KEY": "k.pem",
            "OVERTIME_AMQP_LOGIN": "certificate",
            "OVERTIME_EVENTS_SOURCE": "urn:video", "OVERTIME_STORE": "sqlite:/var/lib/o.db",
            "OVERTIME_ROOMS_ADHOC": "true", "OVERTIME_ROOMS_DURATION": "1h30m",
            "OVERTIME_ROOMS_RETENTION": "90d",
            "OVERTIME_IDS_RETENTION": "0.5", "OVERTIME_HTTP": "[::1]:9464", "OVERTIME_LOG_LEVEL": "debug",
            "OVERTIME_LOG_FORMAT": "text",
        ])
        var expected = Configuration()
        expected.amqp = .init(
            url: Secret("amqps://u:p@broker/vhost"), prefix: "p", shards: 4, declare: false,
            replies: .exchange,
            heartbeatSeconds: 5, logRetentionMilliseconds: nil, operators: ["ops", "backend"],
            ca: "/etc/ca.pem", certificate: "c.pem", key: "k.pem", login: .certificate)
        expected.events.source = "urn:video"
        expected.store = .sqlite(path: "/var/lib/o.db")
        expected.rooms = .init(
            adhoc: true, durationMilliseconds: 5_400_000, retentionMilliseconds: 7_776_000_000)
        expected.ids.retentionMilliseconds = 30_000
        expected.http = .init(host: "::1", port: 9464)
        expected.log = .init(level: .debug, format: .text)
        #expect(configuration == expected)
        for key in ConfigurationKey.all where key.path != "amqp.url" {
            let shown = key.show(configuration)
            var again = Configuration()
            #expect(key.apply(shown, &again), "\(shown)")
            #expect(key.show(again) == shown)
        }
    }

    @Test("the operators of a file are a list of texts or one text")
    func operators() throws {
        for (text, names) in [
            ("['a', 'b']", ["a", "b"]), ("'a,b'", ["a", "b"]), ("[]", []), ("''", []), ("['a b']", ["a b"]),
        ] {
            let loaded = try Self.withFile("{ amqp: { operators: \(text) } }") { try Self.load(file: $0) }
            #expect(loaded.amqp.operators == names)
        }
    }

    @Test("help names every key's flag and variable once, in aligned lines")
    func help() {
        let lines = ConfigurationKey.help().split(separator: "\n")
        #expect(lines.count == ConfigurationKey.all.count)
        for (key, line) in zip(ConfigurationKey.all, lines) {
            #expect(line.contains("\(key.flag) \(key.placeholder)") && line.contains(" \(key.variable) "))
        }
    }

    @Test("a secret is never shown, whatever prints it")
    func secret() {
        let secret = Secret("amqp://user:hunter2@host:1/v?heartbeat=hunter2")
        var dumped = ""
        dump(Configuration.AMQP(url: secret), to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), "\(Configuration.AMQP(url: secret))", dumped] {
            #expect(!text.contains("hunter2"))
        }
        #expect(secret.withoutCredentials == "amqp://host:1/v")
        #expect(Secret("amqp://u:a@b/c@host/v").withoutCredentials == "amqp://host/v")
        #expect(Secret("amqp://host").withoutCredentials == "amqp://host")
        #expect(Secret("hunter2").withoutCredentials == "(secret)")
    }

    @Test("a comma separates URLs only where another one follows")
    func severalURLs() throws {
        let rows: [(String, [String])] = [
            ("amqp://a", ["amqp://a"]), ("amqp://u:p,q@a", ["amqp://u:p,q@a"]),
            ("amqp://u:p,q@a,amqps://u:p@b:1/v", ["amqp://u:p,q@a", "amqps://u:p@b:1/v"]),
            ("amqp://a,AMQP://b", ["amqp://a", "AMQP://b"]), ("amqp://a,", ["amqp://a,"]),
        ]
        for (text, urls) in rows { #expect(BrokerURLs.split(text) == urls) }
        let several = "amqp://u:hunter2,x@a:1/v,amqp://u:hunter2@b:2/v"
        #expect(try Self.load(["OVERTIME_AMQP_URL": several]).amqp.url.reveal() == several)
        #expect(Secret(several).withoutCredentials == "amqp://a:1/v,amqp://b:2/v")
        for bad in ["amqp://a,amqp://", "amqp://a,amqp://b:x", "amqp://a, amqp://b"] {
            #expect(throws: ConfigurationError.self) { try Self.load(["OVERTIME_AMQP_URL": bad]) }
        }
    }

    @Test("a file of its own holds the value of a variable that can be secret")
    func secretFiles() throws {
        for ending in ["", "\n", "\r\n"] {
            try Self.withFile("amqp://u:hunter2@h:5673/v\(ending)") { path in
                let configuration = try Self.load(["OVERTIME_AMQP_URL_FILE": path])
                #expect(configuration.amqp.url.reveal() == "amqp://u:hunter2@h:5673/v")
            }
        }
        try Self.withFile("sqlite:/var/lib/overtime.db") { path in
            let configuration = try Self.load(["OVERTIME_STORE_FILE": path])
            #expect(configuration.store == .sqlite(path: "/var/lib/overtime.db"))
        }
        let variables = ConfigurationKey.all.compactMap(\.fileVariable)
        #expect(variables == ["OVERTIME_AMQP_URL_FILE", "OVERTIME_STORE_FILE"])
        // What can be secret by its value must be able to stand in a file.
        for key in ConfigurationKey.all where key.isSecret("amqp://u:p@h") {
            #expect(key.fileVariable != nil, "\(key.path)")
        }
    }

    @Test("each setting says what is in force and where it was set, without secrets")
    func origins() throws {
        let text = "{\n  amqp: { prefix: \"a\", shards: 2 },\n  store: \"sqlite:x.db\" }"
        let settings = try Self.withFile("amqp://u:hunter2@h:5673/v\n") { secret in
            try Self.withFile(text) { file in
                let reading = Configuration.read(
                    flags: ["amqp.shards": "4"],
                    environment: [
                        "OVERTIME_AMQP_URL_FILE": secret, "OVERTIME_AMQP_PREFIX": "b",
                        "OVERTIME_CONFIG": file,
                    ], configPath: nil, isTerminal: false)
                #expect(reading.problems == [])
                #expect(
                    reading.origin(of: "amqp.url")
                        == "variable OVERTIME_AMQP_URL_FILE, file \(Suggestion.printable(secret))")
                #expect(reading.origin(of: "store") == "file \(file) line 3")
                return reading.settings
            }
        }
        #expect(settings.map(\.path) == ConfigurationKey.all.map(\.path))
        let found = Dictionary(uniqueKeysWithValues: settings.map { ($0.path, $0) })
        #expect(found["amqp.url"]?.value == "amqp://h:5673/v")
        #expect(found["amqp.prefix"]?.value == "b")
        #expect(found["amqp.prefix"]?.origin == "variable OVERTIME_AMQP_PREFIX")
        #expect(found["amqp.shards"]?.value == "4")
        #expect(found["amqp.shards"]?.origin == "flag --amqp-shards")
        #expect(found["rooms.duration"]?.origin == "default")
        #expect(!settings.contains { $0.value.contains("hunter2") || $0.origin.contains("hunter2") })
    }
}
