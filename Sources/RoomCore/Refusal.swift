/// Why a command was not carried out: a result like any other, stored and repeated, never thrown.
package struct Refusal: Hashable, Sendable, Error {
    package let reason: Reason
    /// A sentence that helps the sender.
    package let message: String
    /// When the next window opens, where that is known (`already_extended`, `window_not_open`).
    package let opensAt: Instant?
    /// Who extended before (`already_extended`).
    package let extendedBy: Extender?

    package init(
        _ reason: Reason, _ message: String, opensAt: Instant? = nil, extendedBy: Extender? = nil
    ) {
        self.reason = reason
        self.message = message
        self.opensAt = opensAt
        self.extendedBy = extendedBy
    }

    /// The table of contract section 3, in the order in which they are looked for.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        case invalidCommand = "invalid_command"
        case idReused = "id_reused"
        case unknownRoom = "unknown_room"
        case invalidPolicy = "invalid_policy"
        case sessionOver = "session_over"
        case noSession = "no_session"
        case notConnected = "not_connected"
        case unauthorized
        case limitReached = "limit_reached"
        case alreadyExtended = "already_extended"
        case windowNotOpen = "window_not_open"

        package var code: Int {
            switch self {
            case .invalidCommand: 6008
            case .idReused: 6009
            case .unknownRoom: 6002
            case .invalidPolicy: 6007
            case .sessionOver: 6010
            case .noSession: 6003
            case .notConnected: 6001
            case .unauthorized: 5116
            case .limitReached: 6006
            case .alreadyExtended: 6005
            case .windowNotOpen: 6004
            }
        }
    }

    package static func invalidPolicy(_ message: String) -> Refusal { Refusal(.invalidPolicy, message) }
}
