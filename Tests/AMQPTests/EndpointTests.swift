import Testing

@testable import AMQP

@Suite struct EndpointTests {
    struct Good: Sendable, CustomTestStringConvertible {
        var url: String
        var isTLS = false
        var host = "h"
        var port: UInt16 = 5672
        var user = "guest"
        var password = "guest"
        var virtualHost = "/"
        var testDescription: String { url }
    }

    static let good: [Good] = [
        Good(url: "amqp://h"),
        Good(url: "AMQP://h"),
        Good(url: "amqps://h", isTLS: true, port: 5671),
        Good(url: "amqp://h:1", port: 1),
        Good(url: "amqp://h:65535", port: 65535),
        Good(url: "amqp://h:", port: 5672),
        Good(url: "amqp://h/", virtualHost: ""),
        Good(url: "amqp://h/%2F", virtualHost: "/"),
        Good(url: "amqp://h/%2f", virtualHost: "/"),
        Good(url: "amqp://h/rooms", virtualHost: "rooms"),
        Good(url: "amqp://h/a%2Fb", virtualHost: "a/b"),
        Good(url: "amqp://u@h", user: "u"),
        Good(url: "amqp://u:@h", user: "u", password: ""),
        Good(url: "amqp://u:p@h", user: "u", password: "p"),
        Good(url: "amqp://u%40x:p%3A%2F%25@h:7/v", port: 7, user: "u@x", password: "p:/%", virtualHost: "v"),
        Good(url: "amqp://u:%C3%BC@h", user: "u", password: "ü"),
        Good(url: "amqp://[::1]", host: "::1"),
        Good(url: "amqp://[::1]:99/v", host: "::1", port: 99, virtualHost: "v"),
        Good(url: "amqp://u:p@[fe80::1]:99", host: "fe80::1", port: 99, user: "u", password: "p"),
        Good(url: "amqp://127.0.0.1:5811", host: "127.0.0.1", port: 5811),
    ]

    @Test("an AMQP URL says where and who", arguments: good)
    func read(_ one: Good) throws {
        let endpoint = try Endpoint(url: one.url)
        #expect(endpoint.isTLS == one.isTLS)
        #expect(endpoint.host == one.host)
        #expect(endpoint.port == one.port)
        #expect(endpoint.user == one.user)
        #expect(endpoint.password.value == one.password)
        #expect(endpoint.virtualHost == one.virtualHost)
    }

    static let bad: [(String, EndpointError)] = [
        ("", .noScheme),
        ("h:5672", .noScheme),
        ("amqp:/h", .noScheme),
        ("http://h", .unknownScheme("http")),
        ("amqp://", .emptyHost),
        ("amqp://:5672", .emptyHost),
        ("amqp:///v", .emptyHost),
        ("amqp://u:hunter2@", .emptyHost),
        ("amqp://h h", .forbiddenCharacter(part: "host")),
        ("amqp://h%20h", .malformedHost("h h")),
        ("amqp://a,b:5672", .malformedHost("a,b")),
        ("amqp://[::1", .unclosedBracket),
        ("amqp://[h]", .malformedHost("h")),
        ("amqp://[::1]x", .malformedPort("x")),
        ("amqp://h:0", .malformedPort("0")),
        ("amqp://h:65536", .malformedPort("65536")),
        ("amqp://h:+1", .malformedPort("+1")),
        ("amqp://h:1:2", .malformedPort("1:2")),
        ("amqp://::1", .emptyHost),
        ("amqp://u:hunter2%@h", .malformedPercentEncoding(part: "password")),
        ("amqp://u:hunter2%zz@h", .malformedPercentEncoding(part: "password")),
        ("amqp://u:hunter2%00@h", .forbiddenCharacter(part: "password")),
        ("amqp://u:hunter2%FF@h", .notText(part: "password")),
        ("amqp://u:hunter2:x@h", .forbiddenCharacter(part: "password")),
        ("amqp://u:hunter2@x@h", .forbiddenCharacter(part: "user information")),
        ("amqp://u:hunter2 x@h", .forbiddenCharacter(part: "password")),
        ("amqp://h/a/b", .tooManySlashes),
        ("amqp://h//", .tooManySlashes),
        ("amqp://h/v?heartbeat=1", .query),
        ("amqp://h?x", .query),
        ("amqp://h#x", .query),
        ("amqp://u:hunter2#1@h", .query),
        ("amqp://u:hunter2?1@h", .query),
        ("amqp://u:1/hunter2@h", .forbiddenCharacter(part: "user information or virtual host")),
        ("amqp://h/" + String(repeating: "v", count: 256), .tooLong(part: "virtual host")),
    ]

    @Test("a wrong AMQP URL is named for what is wrong, without its password", arguments: bad)
    func refuse(_ url: String, _ expected: EndpointError) {
        let error = #expect(throws: EndpointError.self) { try Endpoint(url: url) }
        #expect(error == expected)
        #expect(error?.description.contains("hunter2") == false)
    }

    @Test("several URLs are the nodes of one broker, for one user")
    func several() throws {
        let endpoints = try Endpoints(urls: ["amqp://u:hunter2@a/v", "amqps://u:hunter2@[::1]:7/v"])
        #expect(endpoints.all.map(\.address) == ["a:5672", "[::1]:7"])
        #expect(endpoints.user == "u")
        #expect("\(endpoints)" == "amqp://u:<redacted>@a:5672/v,amqps://u:<redacted>@[::1]:7/v")
        let bad: [([String], EndpointError)] = [
            ([], .noScheme), (["amqp://a", "b"], .noScheme),
            (["amqp://u:hunter2@a", "amqp://v:hunter2@b"], .differing(part: "user")),
            (["amqp://a/v", "amqp://b"], .differing(part: "virtual host")),
        ]
        for (urls, expected) in bad {
            let error = #expect(throws: EndpointError.self) { try Endpoints(urls: urls) }
            #expect(error == expected)
            #expect(error?.description.contains("hunter2") == false)
        }
    }

    @Test("the password is never printed")
    func redacted() throws {
        let endpoint = try Endpoint(url: "amqp://user:hunter2@h/v%0Aw")
        var dumped = ""
        dump(endpoint, to: &dumped)
        for text in [
            "\(endpoint)", endpoint.debugDescription, "\(endpoint.password)", dumped, "\([endpoint])",
        ] {
            #expect(!text.contains("hunter2"))
        }
        #expect("\(endpoint)" == "amqp://user:<redacted>@h:5672/v%0Aw")
    }
}
