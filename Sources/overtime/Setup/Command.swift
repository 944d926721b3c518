import Service

/// One command of the program.
struct ProgramCommand: Sendable {
    let name: String
    /// One line of `overtime --help`.
    let summary: String
    /// What follows the name on the usage line.
    let usage: String
    let details: String
    let options: [Option]
    let run: @Sendable (Options) throws(UsageError) -> ProcessExit

    static let all: [ProgramCommand] = [
        .worker, .scheduler, .send, .watch, .rooms, .dead, .check, .configuration, .backup, .restore,
        .migrateStore,
    ]
}

extension Option {
    static let help = Option("help", nil, "print this and end")
    static let config = Option("config", "FILE", "the configuration file (OVERTIME_CONFIG)")
    static let json = Option("json", nil, "print JSON, one object a line")
    static let all = Option("all", nil, "every letter that is there at the start")
    static let timeout = Option(
        "timeout", "DURATION", "how long to wait in all; a bare number means seconds (default 10s)")

    /// One flag for each key of the configuration.
    static let configuration: [Option] = ConfigurationKey.all.map {
        Option(
            String($0.flag.dropFirst(2)), $0.placeholder,
            "\($0.help) (default \($0.defaultText.isEmpty ? "none" : $0.defaultText))")
    }
}
