import Foundation
import OvertimeClient
import Synchronization

/// What each request becomes.
struct Gateway: Sendable {
    private let overtime: Overtime
    private let presence = Presence()

    init(_ overtime: Overtime) { self.overtime = overtime }

    func answer(_ request: HTTP.Request) -> HTTP.Answer {
        let parts = request.path.split(separator: "/").map(String.init)
        guard parts.count == 3, parts[0] == "rooms", let user = request.query["user"] else {
            return .text(404, "there are /rooms/ROOM/events, extend and destroy, each with ?user=USER")
        }
        switch (request.method, parts[2]) {
        case ("GET", "events"): return listen(parts[1], user, role: request.query["role"])
        case ("POST", "extend"): return call { try await $0.extend(parts[1], user: user).json }
        case ("POST", "destroy"): return call { try await $0.destroy(parts[1], user: user).json }
        default: return .text(405, "events is for GET, extend and destroy are for POST")
        }
    }

    private func call(_ body: @escaping @Sendable (Overtime) async throws -> String) -> HTTP.Answer {
        let overtime = overtime
        return HTTP.wait {
            do {
                return .json(200, try await body(overtime))
            } catch OvertimeError.refused(let refusal) {
                return .json(refusal.reason == .unauthorized ? 403 : 409, refusal.json)
            } catch OvertimeError.malformed(let detail) {
                return .text(400, detail)
            } catch {
                return .text(503, "\(error)")
            }
        }
    }

    /// The user is in the room for as long as one of their streams lasts: a page that is loaded anew has two for a while.
    private func listen(_ room: String, _ user: String, role: String?) -> HTTP.Answer {
        let stream = EventStream()
        let (overtime, presence) = (overtime, presence)
        return HTTP.wait {
            do {
                let entered = try await overtime.enter(
                    room, user: user, role: role.flatMap(Overtime.Role.init(rawValue:)), delegate: stream)
                presence.came(entered)
                stream.whenClosed {
                    let isLast = presence.went(entered)
                    if isLast, !stream.isOver { Task { try? await entered.leave() } }
                }
                return .stream(stream)
            } catch OvertimeError.refused(let refusal) {
                return .json(409, refusal.json)
            } catch {
                return .text(503, "\(error)")
            }
        }
    }
}

/// How many streams each user has in each room.
final class Presence: Sendable {
    private struct Key: Hashable { let room, user: String }
    private let counts = Mutex<[Key: Int]>([:])

    func came(_ room: Overtime.Room) {
        counts.withLock { $0[Key(room: room.id, user: room.user), default: 0] += 1 }
    }

    /// Whether it was the last one.
    func went(_ room: Overtime.Room) -> Bool {
        let key = Key(room: room.id, user: room.user)
        return counts.withLock { counts in
            let left = (counts[key] ?? 1) - 1
            counts[key] = left > 0 ? left : nil
            return left == 0
        }
    }
}

/// The notices of one user as server-sent events.
final class EventStream: HTTP.Stream, Overtime.RoomDelegate, @unchecked Sendable {
    func room(_ room: Overtime.Room, didConferenceRemainingDuration data: Overtime.RemainingDuration) {
        send("remaining", ["minutesLeft": data.minutesLeft, "window": data.window, "final": data.isFinal])
    }

    func room(_ room: Overtime.Room, didConferenceExtended data: Overtime.ExtendedDuration) {
        send("extended", ["minutesGranted": data.minutesGranted, "extensions": data.extensions])
    }

    func room(_ room: Overtime.Room, didAckDestroy data: Overtime.DestroyAcknowledgement) {
        send("destroyAcknowledged", ["by": data.by])
    }

    func room(_ room: Overtime.Room, didRoomDisconnected data: Overtime.Disconnection) {
        send("disconnected", ["cause": data.cause?.rawValue ?? "unknown"])
        finish()
    }

    private func send(_ event: String, _ data: [String: Any]) {
        let json = (try? JSONSerialization.data(withJSONObject: data, options: .sortedKeys)) ?? Data()
        put("event: \(event)\ndata: \(String(decoding: json, as: UTF8.self))\n\n")
    }
}
