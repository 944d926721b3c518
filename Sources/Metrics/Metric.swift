/// Every metric there is. The raw value is its name; docs/metrics.md shows the same table, and a test compares both.
///
/// Names follow Prometheus' rules: the program's prefix, base units, `_total` for counters. The two that begin with `process_`
/// have the names under which every dashboard knows them.
package enum Metric: String, Sendable, CaseIterable {
    case buildInfo = "overtime_build_info"
    case ready = "overtime_ready"
    case workLoopAge = "overtime_work_loop_age_seconds"
    case connected = "overtime_connected"
    case reconnects = "overtime_reconnects_total"
    case blocked = "overtime_blocked"
    case clockSteps = "overtime_clock_steps_total"

    case consuming = "overtime_consuming"
    case commands = "overtime_commands_total"
    case commandAge = "overtime_command_age_seconds"
    case commandLatency = "overtime_command_latency_seconds"
    case inHand = "overtime_deliveries_in_hand"
    case batchItems = "overtime_batch_items"
    case storeCommit = "overtime_store_commit_seconds"
    case storeFailures = "overtime_store_failures_total"
    case storeConflicts = "overtime_store_conflicts_total"
    case storeSize = "overtime_store_size_bytes"
    case liveRooms = "overtime_live_rooms"
    case announcementLateness = "overtime_announcement_lateness_seconds"
    case events = "overtime_events_total"
    case passedOver = "overtime_events_passed_over_total"
    case outboxDepth = "overtime_outbox_depth"
    case outboxOldestAge = "overtime_outbox_oldest_age_seconds"
    case publications = "overtime_publications_total"
    case droppedReplies = "overtime_dropped_replies_total"
    case deadLetters = "overtime_dead_letters_total"

    case deadlinesHeld = "overtime_deadlines_held"
    case overdueRooms = "overtime_overdue_rooms"
    case firingLateness = "overtime_firing_lateness_seconds"
    case firedRooms = "overtime_fired_rooms_total"
    case ticks = "overtime_ticks_total"
    case snapshots = "overtime_snapshots_total"
    case clockOffset = "overtime_clock_offset_seconds"

    case processStart = "process_start_time_seconds"
    case residentMemory = "process_resident_memory_bytes"

    package var definition: MetricDefinition {
        Self.definitions[self] ?? MetricDefinition(.gauge, .count, [], "Not described")
    }

    /// The metrics of one kind of process, in the order of the table.
    package static func all(of source: MetricDefinition.Source) -> [Metric] {
        allCases.filter { $0.definition.sources.contains(source) }
    }

    private static let both: [MetricDefinition.Source] = [.worker, .scheduler]

    /// From a tenth of a millisecond to ten seconds: a sync to a disk, an answer, a notice.
    private static let fine: [Double] = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]
    /// From ten milliseconds to an hour: what waiting for somebody makes late.
    private static let coarse: [Double] = [
        0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600,
    ]
    /// What seconds can tell, up to a day.
    private static let wholeSeconds: [Double] = [1, 2, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400]
    private static let batches: [Double] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

    private static let definitions: [Metric: MetricDefinition] = [
        .buildInfo: MetricDefinition(
            .gauge, .count, both, labels: ["version", "component"],
            "Always 1; which version runs, and as what"),
        .ready: MetricDefinition(
            .gauge, .flag, both, "Whether all that /readyz looks at is in order"),
        .workLoopAge: MetricDefinition(
            .gauge, .seconds, both, "Time since the work loop last turned; above 30 s /healthz fails"),
        .connected: MetricDefinition(
            .gauge, .flag, both, labels: ["connection"], "Whether a connection to the broker is open"),
        .reconnects: MetricDefinition(
            .counter, .count, both, labels: ["connection"], "Times that a lost connection was made again"),
        .blocked: MetricDefinition(
            .gauge, .flag, both, "Whether the broker takes no publications for now"),
        .clockSteps: MetricDefinition(
            .counter, .count, both,
            "Times that the wall clock was stepped or the machine suspended, by half a second or more"),

        .consuming: MetricDefinition(
            .gauge, .flag, [.worker], labels: ["queue"], "Whether a queue is consumed"),
        .commands: MetricDefinition(
            .counter, .count, [.worker], labels: ["command", "outcome"],
            "Commands decided: applied, refused, or repeated with the answer given before"),
        .commandAge: MetricDefinition(
            .histogram(bounds: wholeSeconds), .seconds, [.worker],
            "Time from a command's timestamp, where its publisher set one, to its being taken for a decision"),
        .commandLatency: MetricDefinition(
            .histogram(bounds: fine), .seconds, [.worker],
            "Time from a command's delivery to its acknowledgement: decided, durable, its events and reply confirmed"
        ),
        .inHand: MetricDefinition(
            .gauge, .count, [.worker], "Deliveries that are taken and not acknowledged yet"),
        .batchItems: MetricDefinition(
            .histogram(bounds: batches), .count, [.worker],
            "Commands and rooms of ticks that were decided in one transaction"),
        .storeCommit: MetricDefinition(
            .histogram(bounds: fine), .seconds, [.worker], "Time that a commit to the store took"),
        .storeFailures: MetricDefinition(
            .counter, .count, [.worker], "Failures of the store that stopped the consumption"),
        .storeConflicts: MetricDefinition(
            .counter, .count, [.worker],
            "Transactions decided again because another worker had changed a room meanwhile"),
        .storeSize: MetricDefinition(
            .gauge, .bytes, [.worker], labels: ["file"],
            "Size of the database, and of the journal that is still to be moved into it"),
        .liveRooms: MetricDefinition(
            .gauge, .count, [.worker], "Rooms with a waiting or running session"),
        .announcementLateness: MetricDefinition(
            .histogram(bounds: coarse), .seconds, [.worker],
            "How long after its instant a window or end was decided, by a tick or at the start"),
        .events: MetricDefinition(.counter, .count, [.worker], "Events made durable for publication"),
        .passedOver: MetricDefinition(
            .counter, .count, [.worker],
            "Events given up after 60 s: a queue bound to them refused, or the broker closed the channel over them"
        ),
        .outboxDepth: MetricDefinition(
            .gauge, .count, [.worker], "Events that are durable and not known to be published"),
        .outboxOldestAge: MetricDefinition(
            .gauge, .seconds, [.worker], "Age of the oldest of them, in whole seconds; 0 where there is none"),
        .publications: MetricDefinition(
            .counter, .count, [.worker], labels: ["channel", "outcome"],
            "Publications by their end; unknown where the channel was lost first, and they are sent again"),
        .droppedReplies: MetricDefinition(
            .counter, .count, [.worker],
            "Replies given up: refused for 20 s, without a confirm for 60 s, or closing their channel"),
        .deadLetters: MetricDefinition(
            .counter, .count, [.worker], labels: ["reason"], "Messages given up, by reason"),

        .deadlinesHeld: MetricDefinition(
            .gauge, .count, [.scheduler], "Live rooms whose next instant is known"),
        .overdueRooms: MetricDefinition(
            .gauge, .count, [.scheduler], "Rooms that were fired and of which no newer state was seen yet"),
        .firingLateness: MetricDefinition(
            .histogram(bounds: coarse), .seconds, [.scheduler],
            "How long after its instant, by the worker's clock, a room was first fired"),
        .firedRooms: MetricDefinition(
            .counter, .count, [.scheduler], "Rooms fired, each repetition included"),
        .ticks: MetricDefinition(.counter, .count, [.scheduler], "Tick messages published"),
        .snapshots: MetricDefinition(
            .counter, .count, [.scheduler], "Snapshots of the live rooms that were read to their end"),
        .clockOffset: MetricDefinition(
            .gauge, .seconds, [.scheduler], "How far the worker's clock is ahead, as far as answers bound it"),

        .processStart: MetricDefinition(
            .gauge, .seconds, both, "When the process started, in seconds since 1970"),
        .residentMemory: MetricDefinition(.gauge, .bytes, both, "Memory of the process that is in RAM"),
    ]
}
