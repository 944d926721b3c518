import Contract
package import HTTP
import Metrics
import RoomCore
import Service

/// What the scheduler counts for its metrics: plain numbers on its own thread.
struct SchedulerMeters {
    var firedRooms: Int64 = 0
    var ticks: Int64 = 0
    var snapshots: Int64 = 0
    var connections = ["consumer": ConnectionMeter(), "publisher": ConnectionMeter()]
}

/// What the scheduler says of itself to those who watch it.
extension Scheduler {
    package var status: StatusBoard.Status {
        var status = StatusBoard.Status(notReady: notReady)
        for name in ["consumer", "publisher"] {
            let connection = meters.connections[name] ?? ConnectionMeter()
            status.report.set(.connected, connection.isConnected, name)
            status.report.set(.reconnects, connection.reconnects, name)
        }
        status.report.set(.blocked, isBlocked)
        status.report.set(.clockSteps, Int64(steps.count))
        status.report.set(.deadlinesHeld, Int64(agenda.count))
        status.report.set(.overdueRooms, Int64(agenda.overdue))
        status.report.set(.firingLateness, agenda.lateness)
        status.report.set(.firedRooms, meters.firedRooms)
        status.report.set(.ticks, meters.ticks)
        status.report.set(.snapshots, meters.snapshots)
        status.report.set(.clockOffset, Double(offset.milliseconds) / 1_000)
        return status
    }

    /// What keeps this scheduler from firing, a line each.
    private var notReady: [String] {
        var lines: [String] = []
        for channel in SchedulerChannel.all.sorted() where !listening.contains(channel) {
            lines.append("listening: not to the \(channelName(channel))")
        }
        if publishing == nil { lines.append("publishing: not ticks") }
        if isBlocked { lines.append("broker: it takes no publications for now (memory or disk alarm)") }
        if !isSnapshotComplete { lines.append("snapshot: the live rooms are not all known yet") }
        return lines
    }
}
