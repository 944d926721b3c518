import Glibc
import Synchronization

/// The log: one line a state change, on standard error, as text for people or JSON for programs.
///
/// The message is a fixed phrase that can be searched for; what varies stands in the fields. Writing never fails and
/// never stops the service: with a full disk, or a pipe that nobody reads, lines are lost, rooms are not. How many were
/// lost is said once somebody reads again.
package final class Log: Sendable {
    package enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, warning, error

        package static func < (left: Level, right: Level) -> Bool {
            left.rawValue < right.rawValue
        }

        package var name: String {
            switch self {
            case .debug: "debug"
            case .info: "info"
            case .warning: "warning"
            case .error: "error"
            }
        }

        var colour: String {
            switch self {
            case .debug: "\u{1B}[2m"
            case .info: "\u{1B}[32m"
            case .warning: "\u{1B}[33m"
            case .error: "\u{1B}[31m"
            }
        }
    }

    package enum Format: String, Sendable, CaseIterable {
        case text, json
    }

    private let component: String
    private let lowest: Level
    private let format: Format
    private let colour: Bool
    private let shortTime: Bool
    private let descriptor: Int32
    private let clock: any WallClock
    private let lost = Atomic<Int64>(0)

    /// How long a line waits for its reader, in milliseconds; after the first that waited in vain none waits.
    private static let patience: Int32 = 100

    /// `shortTime` leaves the date out of text lines.
    package init(
        component: String, level: Level = .info, format: Format, colour: Bool = false,
        shortTime: Bool = false,
        descriptor: Int32 = 2, clock: any WallClock = SystemClock()
    ) {
        self.component = component
        self.lowest = level
        self.format = format
        self.colour = colour
        self.shortTime = shortTime
        self.descriptor = descriptor
        self.clock = clock
    }

    /// The log that a configuration asks for, on standard error.
    package convenience init(
        component: String, configuration: Configuration.Logging, environment: [String: String] = [:]
    ) {
        self.init(
            component: component, level: configuration.level, format: configuration.format,
            colour: ProcessEnvironment.wantsColour(2, environment: environment),
            shortTime: ProcessEnvironment.isTerminal(2))
    }

    /// The same log under another component's name.
    package func named(_ component: String) -> Log {
        Log(
            component: component, level: lowest, format: format, colour: colour, shortTime: shortTime,
            descriptor: descriptor, clock: clock)
    }

    package func debug(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.debug, message, fields)
    }

    package func info(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.info, message, fields)
    }

    package func warning(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.warning, message, fields)
    }

    package func error(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.error, message, fields)
    }

    /// Fields are only built for a line that is written.
    private func write(_ level: Level, _ message: StaticString, _ fields: () -> LogFields) {
        guard level >= lowest else { return }
        write(count: 1) { line(level, message, fields())[...] }
    }

    /// Writes what `body` makes, some lines, unless it would have to wait for long.
    private func write(count: Int64, _ body: () -> ArraySlice<UInt8>) {
        guard isTaken(waiting: lost.load(ordering: .relaxed) == 0 ? Self.patience : 0) else {
            lost.add(count, ordering: .relaxed)
            return
        }
        let missing = lost.exchange(0, ordering: .relaxed)
        if missing > 0 {
            write(line(.warning, "log lines were lost: nobody read them", ["count": missing])[...])
            // That line may have taken the only room there was.
            guard isTaken(waiting: 0) else {
                lost.add(count, ordering: .relaxed)
                return
            }
        }
        write(body())
    }

    private func line(_ level: Level, _ message: StaticString, _ fields: LogFields) -> [UInt8] {
        var bytes: [UInt8] = []
        append(level, message, fields, time: time(clock.nowMilliseconds()), to: &bytes)
        return bytes
    }

    private func append(
        _ level: Level, _ message: StaticString, _ fields: LogFields, time: String, to bytes: inout [UInt8]
    ) {
        let line = LogLine(
            time: time, level: level, component: component, message: message.description, fields: fields)
        switch format {
        case .json: line.writeJSON(to: &bytes)
        case .text: line.writeText(colour: colour, to: &bytes)
        }
    }

    /// An instant as it stands in a line. With a terminal the date is left out: whoever is looking knows it.
    private func time(_ milliseconds: Int64) -> String {
        format == .text && shortTime
            ? FormattedTime.timeOfDay(milliseconds) : FormattedTime.iso(milliseconds)
    }

    // MARK: Many lines

    /// Lines of one moment, written together: what happened to hundreds of rooms at once costs a few calls.
    package struct Bundle {
        private let log: Log
        /// That of the first line.
        private lazy var time = log.time(log.clock.nowMilliseconds())
        private var bytes: [UInt8] = []
        private var count: Int64 = 0

        /// What a pipe takes whole, so that lines of several processes do not mix.
        private static let piece = 4096

        fileprivate init(log: Log) {
            self.log = log
        }

        package mutating func debug(_ message: StaticString, _ fields: @autoclosure () -> LogFields) {
            add(.debug, message, fields)
        }

        package mutating func info(_ message: StaticString, _ fields: @autoclosure () -> LogFields) {
            add(.info, message, fields)
        }

        private mutating func add(_ level: Level, _ message: StaticString, _ fields: () -> LogFields) {
            guard level >= log.lowest else { return }
            if count == 0 { bytes.reserveCapacity(2 * Self.piece) }
            let end = bytes.count
            log.append(level, message, fields(), time: time, to: &bytes)
            if bytes.count > Self.piece { flush(upTo: end) }
            count += 1
        }

        /// Writes the whole lines that end there.
        private mutating func flush(upTo end: Int) {
            guard count > 0 else { return }
            log.write(count: count) { bytes[..<end] }
            bytes.removeFirst(end)
            count = 0
        }

        fileprivate mutating func flush() { flush(upTo: bytes.count) }
    }

    /// Writes the lines that `body` adds.
    package func together(_ body: (inout Bundle) -> Void) {
        var bundle = Bundle(log: self)
        body(&bundle)
        bundle.flush()
    }

    /// Whether a write would not wait: a pipe then has room for 4,096 bytes, which nearly every line fits in.
    private func isTaken(waiting milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while true {
            let count = poll(&entry, 1, milliseconds)
            if count >= 0 || errno != EINTR { return count != 0 }
        }
    }

    private func write(_ bytes: ArraySlice<UInt8>) {
        // One call, so that lines of several threads and processes do not mix. What it says is of no use here.
        bytes.withUnsafeBytes { bytes in
            while Glibc.write(descriptor, bytes.baseAddress, bytes.count) < 0, errno == EINTR {}
        }
    }
}
