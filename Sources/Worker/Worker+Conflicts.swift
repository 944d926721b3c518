import RoomCore
import Service
import Store

/// Rooms that somebody else changed while they were being decided: nothing was written, and nobody is at fault.
///
/// With several workers that is ordinary, as any of them takes any tick. The batch is loaded and decided anew; where it meets
/// conflicts again and again it is halved, so that one busy room does not hold up all others. The first half is done
/// before the second, so each room keeps its order. A room that meets them even alone is set aside for a while.
extension Worker {
    /// Does a batch in two halves; false where it goes back to the front of the intake, with what is behind it.
    func halve(
        ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>,
        behind: (ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>),
        isAlone: Bool, at uptime: Int64
    ) -> Bool {
        guard let (first, second) = Self.halves(ticks, commands) else {
            waitAside(ticks.first, commands.first, at: uptime)
            // Later commands of the room are found again in their turn, and wait with it.
            putBack(ticks: Array(behind.ticks), commands: Array(behind.commands))
            return false
        }
        return process(
            ticks: first.ticks, commands: first.commands,
            behind: (second.ticks + behind.ticks, second.commands + behind.commands),
            isAlone: isAlone, at: uptime)
            && process(
                ticks: second.ticks, commands: second.commands, behind: behind, isAlone: isAlone, at: uptime)
    }

    /// Sets aside a room that others change all the time, with its command if it was one.
    private func waitAside(_ tick: TakenTick?, _ command: PendingCommand?, at uptime: Int64) {
        if let tick, let room = tick.tick.rooms.first {
            aside.put(room, nil, at: uptime)
            if tick.isLast { jobs.finishIfSettled(tick.tick.job) }
        } else if let command {
            var waiting = command.waiting
            waiting.attempt = nil
            aside.put(command.command.room, waiting, at: uptime)
            jobs.abandon(command.job)
            // It may wait for long: a crash meanwhile must not count against it.
            if let attempt = command.attempt { unmark(attempt, at: uptime) }
        }
    }

    private typealias Part = (ticks: ArraySlice<TakenTick>, commands: ArraySlice<PendingCommand>)

    /// Ticks first, as in the batch; nil for a single room or command.
    private static func halves(
        _ ticks: ArraySlice<TakenTick>, _ commands: ArraySlice<PendingCommand>
    ) -> (Part, Part)? {
        if !ticks.isEmpty, !commands.isEmpty { return ((ticks, []), ([], commands)) }
        if commands.count > 1 {
            let half = commands.count / 2
            return (([], commands.prefix(half)), ([], commands.dropFirst(half)))
        }
        if ticks.count > 1 {
            let half = ticks.count / 2
            return ((ticks.prefix(half), []), (ticks.dropFirst(half), []))
        }
        guard let (tick, isLast) = ticks.first, tick.rooms.count > 1 else { return nil }
        let half = tick.rooms.count / 2
        func part(_ rooms: ArraySlice<RoomID>, isLast: Bool) -> Part {
            ([(PendingTick(job: tick.job, rooms: Array(rooms), reply: tick.reply), isLast)], [])
        }
        return (
            part(tick.rooms.prefix(half), isLast: false), part(tick.rooms.dropFirst(half), isLast: isLast)
        )
    }
}

extension StoreError {
    var isConflict: Bool {
        if case .conflict = self { true } else { false }
    }
}
