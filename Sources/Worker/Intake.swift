import AMQP
import RoomCore
import Store

/// What has been delivered and not yet decided, and who goes first.
///
/// Ticks are served before commands, so that a backlog of commands delays no window; but while commands wait they
/// get at most half of a batch, counted in rooms, so that a flood of ticks starves no command. Bounded by the
/// prefetch of each channel.
struct Intake {
    /// A command, and when it arrived by the monotonic clock.
    struct WaitingCommand {
        let delivery: Delivery
        /// The consuming channel that it came on.
        let channel: Int
        let at: Int64
        /// The durable mark of an attempt to decide it that came to nothing; nil for none.
        var attempt: AttemptKey?
        /// True where it has been taken before.
        var isAgain = false
        /// Whether it may be what killed a worker; nil until somebody has asked.
        var isSuspect: Bool?
    }

    /// A tick that may take several batches.
    struct WaitingTick {
        let job: UInt64
        var rooms: ArraySlice<RoomID>
        let reply: ReplyAddress?
    }

    private var commands: [WaitingCommand] = []
    private var nextCommand = 0
    private var ticks: [WaitingTick] = []

    var commandCount: Int { commands.count - nextCommand }
    var isEmpty: Bool { commandCount == 0 && ticks.isEmpty }

    /// Takes a command that arrived at a point of the monotonic clock.
    mutating func add(command: Delivery, on channel: Int = ConsumerChannel.commands, at uptime: Int64) {
        commands.append(WaitingCommand(delivery: command, channel: channel, at: uptime))
    }

    mutating func add(tick: WaitingTick) { ticks.append(tick) }

    /// The ticks of the next batch, with whether each is finished by it.
    mutating func takeTicks(batchSize: Int) -> [(tick: PendingTick, isLast: Bool)] {
        var room = commandCount > 0 ? max(1, batchSize / 2) : batchSize
        var taken: [(PendingTick, Bool)] = []
        while room > 0, let first = ticks.first {
            let part = first.rooms.prefix(room)
            let rest = first.rooms.dropFirst(part.count)
            taken.append((PendingTick(job: first.job, rooms: Array(part), reply: first.reply), rest.isEmpty))
            room -= part.count
            if rest.isEmpty { ticks.removeFirst() } else { ticks[0].rooms = rest }
        }
        return taken
    }

    /// Judges the first `count` commands that have not been judged, in order, and says whether any is a suspect.
    mutating func judge(first count: Int, isSuspect: (Delivery) -> Bool) -> Bool {
        var isAny = false
        for index in commands[nextCommand...].prefix(count).indices {
            let judgement = commands[index].isSuspect ?? isSuspect(commands[index].delivery)
            commands[index].isSuspect = judgement
            isAny = isAny || judgement
        }
        return isAny
    }

    mutating func takeCommand() -> WaitingCommand? {
        guard nextCommand < commands.count else { return nil }
        let first = commands[nextCommand]
        nextCommand += 1
        if nextCommand == commands.count {
            commands.removeAll(keepingCapacity: true)
            nextCommand = 0
        } else if nextCommand >= 1_024, nextCommand * 2 > commands.count {
            commands.removeFirst(nextCommand)
            nextCommand = 0
        }
        return first
    }

    /// Puts commands back in front of all others, in order.
    mutating func putBack(_ back: [WaitingCommand]) {
        commands.replaceSubrange(0..<nextCommand, with: back)
        nextCommand = 0
    }

    /// Puts ticks back in front of all others, as `takeTicks` gave them.
    mutating func putBack(_ back: [(tick: PendingTick, isLast: Bool)]) {
        for (tick, isLast) in back.reversed() {
            if !isLast, let first = ticks.first, first.job == tick.job {
                ticks[0].rooms = tick.rooms + first.rooms
            } else {
                ticks.insert(
                    WaitingTick(job: tick.job, rooms: tick.rooms[...], reply: tick.reply), at: 0)
            }
        }
    }

    /// Forgets commands of a channel that was closed: the broker delivers them again. Returns how many of the first
    /// `count` are left.
    mutating func dropCommands(of channel: Int, amongFirst count: Int) -> Int {
        let waiting = commands[nextCommand...]
        let left = waiting.prefix(count).count { $0.channel != channel }
        commands = waiting.filter { $0.channel != channel }
        nextCommand = 0
        return left
    }

    /// Forgets ticks; the scheduler fires again. Returns their jobs.
    mutating func dropTicks() -> [UInt64] {
        defer { ticks = [] }
        return ticks.map(\.job)
    }
}
