/// What starts a session.
package enum SessionClock: String, Hashable, Sendable, Codable, CaseIterable {
    case firstJoin = "first-join"
    case firstModerator = "first-moderator"
    case open
}

/// What may follow an ended session: only a new `open`, or a plain join.
package enum Reopening: String, Hashable, Sendable, Codable, CaseIterable {
    case command
    case join
}

/// Who may extend a session.
package enum Extenders: String, Hashable, Sendable, Codable, CaseIterable {
    case anyone
    case moderators
}

/// How much time one extension gives.
package struct ExtensionBounds: Hashable, Sendable, Codable {
    package let min: TimeSpan
    package let max: TimeSpan
    package let `default`: TimeSpan

    package init(min: TimeSpan, max: TimeSpan, default: TimeSpan) {
        self.min = min
        self.max = max
        self.default = `default`
    }
}

/// The rules of a room's sessions, complete: every omitted field has its default.
package struct Policy: Hashable, Sendable, Codable {
    /// Lengths before the end at which windows open, longest first, all different; 1 to 8 of them.
    package let windows: [TimeSpan]
    package let `extension`: ExtensionBounds
    package let extenders: Extenders
    /// Nil for no limit, 0 for none at all.
    package let maxExtensions: Int64?
    /// The longest time from start to end; nil for no limit.
    package let maxTotal: TimeSpan?
    package let clock: SessionClock
    package let reopen: Reopening

    package init(
        windows: [TimeSpan], extension: ExtensionBounds, extenders: Extenders, maxExtensions: Int64?,
        maxTotal: TimeSpan?, clock: SessionClock, reopen: Reopening
    ) {
        self.windows = windows
        self.extension = `extension`
        self.extenders = extenders
        self.maxExtensions = maxExtensions
        self.maxTotal = maxTotal
        self.clock = clock
        self.reopen = reopen
    }
}

/// The policy as a command asked for it: each field may be missing. Equality is that of the arguments,
/// so an omitted field differs from its default written out.
package struct PolicyRequest: Hashable, Sendable {
    package var windows: [TimeSpan]?
    /// Nil where the whole object was omitted.
    package var `extension`: ExtensionRequest?
    package var extenders: Extenders?
    package var maxExtensions: Int64?
    package var maxTotal: TimeSpan?
    package var clock: SessionClock?
    package var reopen: Reopening?

    package init(
        windows: [TimeSpan]? = nil, extension: ExtensionRequest? = nil, extenders: Extenders? = nil,
        maxExtensions: Int64? = nil, maxTotal: TimeSpan? = nil, clock: SessionClock? = nil,
        reopen: Reopening? = nil
    ) {
        self.windows = windows
        self.extension = `extension`
        self.extenders = extenders
        self.maxExtensions = maxExtensions
        self.maxTotal = maxTotal
        self.clock = clock
        self.reopen = reopen
    }
}

/// The `extension` object of a policy as a command asked for it.
package struct ExtensionRequest: Hashable, Sendable {
    package var min: TimeSpan?
    package var max: TimeSpan?
    package var `default`: TimeSpan?

    package init(min: TimeSpan? = nil, max: TimeSpan? = nil, default: TimeSpan? = nil) {
        self.min = min
        self.max = max
        self.default = `default`
    }
}

extension Policy {
    package static let defaultWindows: [TimeSpan] = [.minutes(10), .minutes(5)]
    package static let mostWindows = 8
    /// Default bounds of an extension, stretched by a longer window (see `resolve`).
    package static let shortestExtension = TimeSpan.minutes(10)
    package static let longestExtension = TimeSpan.minutes(30)

    /// Fills in the defaults and checks that the fields fit together (contract, section 2, `policy`).
    ///
    /// Refuses with `invalid_policy` and a sentence that names the field.
    package static func resolve(_ request: PolicyRequest, duration: TimeSpan) -> Result<Policy, Refusal> {
        let windows = request.windows ?? defaultWindows
        guard let longestWindow = windows.first, windows.count <= mostWindows else {
            return .failure(
                .invalidPolicy("policy.windows must list 1 to \(mostWindows) durations, not \(windows.count)")
            )
        }
        guard zip(windows, windows.dropFirst()).allSatisfy({ $0 > $1 }) else {
            return .failure(.invalidPolicy("policy.windows must be different durations, longest first"))
        }
        let asked = request.extension ?? ExtensionRequest()
        let min = asked.min ?? Swift.max(shortestExtension, longestWindow)
        let max = asked.max ?? Swift.max(longestExtension, min)
        let granted = asked.default ?? min
        guard min >= longestWindow else {
            return .failure(
                .invalidPolicy(
                    "policy.extension.min must not be shorter than the longest window, or an extension would reopen its own window"
                ))
        }
        guard min <= max else {
            return .failure(
                .invalidPolicy("policy.extension.min must not be longer than policy.extension.max"))
        }
        guard granted >= min, granted <= max else {
            return .failure(
                .invalidPolicy(
                    "policy.extension.default must lie between policy.extension.min and policy.extension.max")
            )
        }
        if let maxTotal = request.maxTotal, maxTotal < duration {
            return .failure(.invalidPolicy("policy.maxTotal must not be shorter than the duration"))
        }
        return .success(
            Policy(
                windows: windows, extension: ExtensionBounds(min: min, max: max, default: granted),
                extenders: request.extenders ?? .anyone, maxExtensions: request.maxExtensions,
                maxTotal: request.maxTotal, clock: request.clock ?? .firstJoin,
                reopen: request.reopen ?? .command))
    }
}
