import RoomCore
import Testing

/// A policy as asked for, and what becomes of it.
struct PolicyCase: Sendable, CustomTestStringConvertible {
    let name: String
    let request: PolicyRequest
    /// Nil for a valid policy, else the word that the message must name.
    var refused: String?
    var duration = TimeSpan.minutes(60)

    var testDescription: String { name }

    static func windows(_ name: String, _ minutes: [Int64], refused: String? = nil) -> PolicyCase {
        PolicyCase(
            name: name, request: PolicyRequest(windows: minutes.map { .minutes($0) }), refused: refused)
    }

    /// Milliseconds, with the default windows of 10 and 5 minutes.
    static func bounds(
        _ name: String, min: Int64? = nil, max: Int64? = nil, default usual: Int64? = nil,
        windows: [Int64]? = nil, refused: String? = nil
    ) -> PolicyCase {
        PolicyCase(
            name: name,
            request: PolicyRequest(
                windows: windows.map { list in list.map { .ms($0) } },
                extension: ExtensionRequest(
                    min: min.map { .ms($0) }, max: max.map { .ms($0) }, default: usual.map { .ms($0) })),
            refused: refused)
    }

    static func total(_ name: String, _ span: TimeSpan, refused: String? = nil, duration: TimeSpan)
        -> PolicyCase
    {
        PolicyCase(
            name: name, request: PolicyRequest(maxTotal: span), refused: refused, duration: duration)
    }

    static let all: [PolicyCase] = [
        windows("no window", [], refused: "windows"), windows("one window", [10]),
        windows("eight windows", [8, 7, 6, 5, 4, 3, 2, 1]),
        windows("nine windows", [9, 8, 7, 6, 5, 4, 3, 2, 1], refused: "windows"),
        windows("two equal windows", [5, 5], refused: "windows"),
        windows("two equal windows at the end", [7, 5, 5], refused: "windows"),
        windows("shortest first", [5, 10], refused: "windows"),
        windows("the last out of order", [10, 5, 6], refused: "windows"),
        PolicyCase(
            name: "windows a millisecond apart", request: PolicyRequest(windows: [.ms(3), .ms(2), .ms(1)])),
        windows("a window longer than the session", [120, 5]),

        bounds("min as long as the longest window", min: 600_000),
        bounds("min a millisecond shorter than the longest window", min: 599_999, refused: "extension"),
        bounds("min longer than the longest window", min: 600_001),
        bounds("min shorter than ten minutes, with a shorter window", min: 60_000, windows: [60_000]),
        bounds(
            "min of a short window, a millisecond too short", min: 59_999, windows: [60_000],
            refused: "extension"),
        bounds("max below the default min", max: 599_999, refused: "extension"),
        bounds("max as the default min", max: 600_000),
        bounds(
            "max below the default min, with a shorter window", max: 599_999, windows: [60_000],
            refused: "extension"),
        bounds(
            "max below the default min of a long window", max: 1_199_999, windows: [1_200_000],
            refused: "extension"),
        bounds("max as the default min of a long window", max: 1_200_000, windows: [1_200_000]),
        bounds("min equal to max", min: 900_000, max: 900_000),
        bounds("min a millisecond longer than max", min: 900_001, max: 900_000, refused: "extension"),
        bounds("min longer than the default max", min: 3_600_000),
        bounds("default a millisecond below min", min: 900_000, default: 899_999, refused: "extension"),
        bounds("default as min", min: 900_000, default: 900_000),
        bounds("default as max", max: 900_000, default: 900_000),
        bounds("default a millisecond above max", max: 900_000, default: 900_001, refused: "extension"),
        bounds("default below the default min", default: 599_999, refused: "extension"),
        bounds("default as the default max", default: 1_800_000),
        bounds("default above the default max", default: 1_800_001, refused: "extension"),
        bounds(
            "default above the default max, which a long min stretched", min: 3_600_000,
            default: 3_600_001, refused: "extension"),

        total("maxTotal as the duration", .minutes(60), duration: .minutes(60)),
        total("maxTotal a millisecond shorter", .ms(3_599_999), refused: "maxTotal", duration: .minutes(60)),
        total("maxTotal a millisecond longer", .ms(3_600_001), duration: .minutes(60)),
        total("maxTotal of a short session", .ms(1), duration: .ms(1)),
        total("maxTotal of the longest session", .longest, duration: .longest),
        PolicyCase(name: "no extension at all", request: PolicyRequest(maxExtensions: 0)),
        PolicyCase(name: "as many extensions as fit", request: PolicyRequest(maxExtensions: .max)),
    ]
}

/// The defaults of an extension's bounds, in minutes, under the longest window and what was asked for.
struct BoundsCase: Sendable {
    var window: Int64 = 10
    var min: Int64?
    var max: Int64?
    var usual: Int64?
    let result: [Int64]

    static let all: [BoundsCase] = [
        BoundsCase(result: [10, 30, 10]), BoundsCase(window: 1, result: [10, 30, 10]),
        BoundsCase(window: 11, result: [11, 30, 11]), BoundsCase(window: 30, result: [30, 30, 30]),
        BoundsCase(window: 45, result: [45, 45, 45]), BoundsCase(min: 12, result: [12, 30, 12]),
        BoundsCase(min: 31, result: [31, 31, 31]), BoundsCase(max: 15, result: [10, 15, 10]),
        BoundsCase(max: 90, result: [10, 90, 10]), BoundsCase(usual: 20, result: [10, 30, 20]),
        BoundsCase(window: 1, min: 2, result: [2, 30, 2]),
        BoundsCase(window: 1, min: 2, max: 5, usual: 3, result: [2, 5, 3]),
        BoundsCase(window: 45, max: 50, result: [45, 50, 45]),
    ]
}

@Suite("How a policy is filled in and checked")
struct PolicyResolutionTests {
    @Test("Each rule refuses what breaks it and accepts its nearest neighbour", arguments: PolicyCase.all)
    func rule(_ row: PolicyCase) {
        var scene = Scene()
        let request = OpenRequest(duration: row.duration, policy: row.request)
        let step = scene.perform(.open(request), at: .at(0))
        #expect(step.answer == (row.refused == nil ? "done" : "invalid_policy"))
        if let word = row.refused { #expect(step.refusal?.message.contains(word) == true) }
        #expect(step.log == (row.refused == nil ? ["opened"] : []))
    }

    @Test("Every omitted field takes its default")
    func defaults() throws {
        let policy = try Policy.resolve(PolicyRequest(), duration: .minutes(60)).get()
        #expect(policy.windows == [.minutes(10), .minutes(5)])
        #expect(policy.extension.min == .minutes(10))
        #expect(policy.extension.max == .minutes(30))
        #expect(policy.extension.default == .minutes(10))
        #expect(policy.extenders == .anyone)
        #expect(policy.maxExtensions == nil)
        #expect(policy.maxTotal == nil)
        #expect(policy.clock == .firstJoin)
        #expect(policy.reopen == .command)
    }

    @Test("What was asked for is kept")
    func kept() throws {
        let request = PolicyRequest(
            windows: [.minutes(3)],
            extension: ExtensionRequest(min: .minutes(4), max: .minutes(6), default: .minutes(5)),
            extenders: .moderators, maxExtensions: 2, maxTotal: .minutes(90), clock: .firstModerator,
            reopen: .join)
        let policy = try Policy.resolve(request, duration: .minutes(60)).get()
        #expect(
            policy
                == Policy(
                    windows: [.minutes(3)],
                    extension: ExtensionBounds(min: .minutes(4), max: .minutes(6), default: .minutes(5)),
                    extenders: .moderators, maxExtensions: 2, maxTotal: .minutes(90), clock: .firstModerator,
                    reopen: .join))
    }

    @Test("The bounds of an extension follow the longest window and one another", arguments: BoundsCase.all)
    func bounds(_ row: BoundsCase) throws {
        let request = PolicyRequest(
            windows: [.minutes(row.window)],
            extension: ExtensionRequest(
                min: row.min.map { .minutes($0) }, max: row.max.map { .minutes($0) },
                default: row.usual.map { .minutes($0) }))
        let bounds = try Policy.resolve(request, duration: .minutes(60)).get().extension
        let minutes = [bounds.min, bounds.max, bounds.default].map { $0.milliseconds / 60_000 }
        #expect(minutes == row.result)
    }

    @Test("maxTotal is compared with the configured duration where open names none")
    func configuredDuration() {
        var scene = Scene(settings: RoomSettings(duration: .minutes(90)))
        let request = OpenRequest(policy: PolicyRequest(maxTotal: .minutes(89)))
        #expect(scene.perform(.open(request), at: .at(0)).answer == "invalid_policy")
    }
}
