import Contract
package import HTTP
import Metrics
import RoomCore
import Service
import Store

/// What the worker says of itself to those who watch it.
extension Worker {
    package var status: StatusBoard.Status {
        var status = StatusBoard.Status(notReady: notReady)
        reportCommands(into: &status.report)
        reportStore(into: &status.report)
        reportBroker(into: &status.report)
        return status
    }

    /// What keeps this worker from serving, a line each.
    var notReady: [String] {
        var lines: [String] = []
        if !meters.consumer.isConnected { lines.append("broker: the consuming connection is not open") }
        if !meters.publisher.isConnected { lines.append("broker: the publishing connection is not open") }
        if links.isBlocked { lines.append("broker: it takes no publications for now (memory or disk alarm)") }
        if health.isFailing { lines.append("store: it fails, see the log") }
        if phase != .serving { lines.append("worker: \(phase.name)") }
        if shared != nil, phase == .serving, leases.roster == nil {
            lines.append("lease: none is held, so no shard is consumed")
        }
        for (channel, name) in expectedQueues where !links.consuming.contains(channel) {
            lines.append("consuming: not \(name)")
        }
        for channel in [PublisherChannel.events, PublisherChannel.replies, PublisherChannel.letters]
        where links.publisher[channel] == nil {
            lines.append("publishing: not \(publisherName(channel))")
        }
        if links.letterComplaint != nil {
            lines.append("publishing: dead letters are not taken, see the log")
        }
        return lines
    }

    private func reportCommands(into report: inout MetricReport) {
        for kind in CommandKind.allCases {
            for outcome in CommandCounts.Outcome.allCases {
                report.set(.commands, meters.commands[kind, outcome], kind.rawValue, "\(outcome)")
            }
        }
        report.set(.commandAge, meters.commandAge)
        report.set(.commandLatency, meters.commandLatency)
        report.set(.inHand, Int64(jobs.count))
        report.set(.batchItems, meters.batchItems)
        report.set(.announcementLateness, meters.announcementLateness)
        report.set(.events, counters.events)
        report.set(.clockSteps, Int64(clockSteps.count))
        for reason in WorkerMeters.reasons {
            report.set(.deadLetters, meters.deadLetters[reason] ?? 0, reason)
        }
    }

    /// Of a store that fails nothing is asked: its gauges are absent then, rather than old.
    private func reportStore(into report: inout MetricReport) {
        report.set(.storeCommit, meters.storeCommit)
        report.set(.storeFailures, counters.storeFailures)
        report.set(.storeConflicts, counters.conflicts)
        guard !health.isFailing, let statistics = try? store.statistics() else { return }
        report.set(.liveRooms, Int64(statistics.liveRooms))
        report.set(.outboxDepth, Int64(statistics.outboxDepth))
        let age = statistics.oldestOutboxAt.map { max(now.milliseconds - $0.milliseconds, 0) } ?? 0
        report.set(.outboxOldestAge, age / 1_000)
        report.set(.storeSize, statistics.databaseBytes, "database")
        report.set(.storeSize, statistics.journalBytes, "journal")
    }

    private func reportBroker(into report: inout MetricReport) {
        for (name, connection) in [("consumer", meters.consumer), ("publisher", meters.publisher)] {
            report.set(.connected, connection.isConnected, name)
            report.set(.reconnects, connection.reconnects, name)
        }
        report.set(.blocked, links.isBlocked)
        let commands = shards.all.map { shard in
            (shards.count == 1 ? "commands" : "commands.\(shard)", ConsumerChannel.commands(of: shard))
        }
        for (name, channel) in commands + [
            ("ticks", ConsumerChannel.ticks), ("queries", ConsumerChannel.queries),
        ] {
            report.set(.consuming, links.consuming.contains(channel), name)
        }
        let channels = [
            ("events", PublisherChannel.events), ("replies", PublisherChannel.replies),
            ("dead_letters", PublisherChannel.letters),
        ]
        for (name, channel) in channels {
            for end in PublicationEnd.allCases {
                report.set(.publications, meters.publications[channel][end.rawValue], name, "\(end)")
            }
        }
        report.set(.droppedReplies, counters.droppedReplies)
        report.set(.passedOver, counters.passedOver)
    }
}
