import Glibc
import Service

/// The program's entry: finds the command, reads its options, runs it.
func run(_ words: [String]) -> ProcessExit {
    guard let name = words.first else {
        Output.line(Help.program)
        return .usage
    }
    switch name {
    case "--help", "-h", "help":
        Output.line(Help.program)
        return .ok
    case "--version", "version":
        Output.line("overtime \(Version.current)")
        return .ok
    default: break
    }
    guard let command = ProgramCommand.all.first(where: { $0.name == name }) else {
        let known = ProgramCommand.all.map(\.name) + ["--help", "--version"]
        Output.error(
            "unknown command \(name)\(Suggestion.text(for: name, among: known)); see overtime --help")
        return .usage
    }
    do throws(UsageError) {
        let options = try Options.parse(
            Array(words.dropFirst()), accepting: command.options + [.help, .config] + Option.configuration)
        if options.has("help") {
            Output.line(Help.command(command))
            return .ok
        }
        return try command.run(options)
    } catch {
        Output.error("\(error.message); see overtime \(name) --help")
        return .usage
    }
}

/// A closed standard descriptor would be given to the next file or socket, and what is printed would go there.
func fillStandardDescriptors() {
    while true {
        let descriptor = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard (0...2).contains(descriptor) else {
            if descriptor > 2 { close(descriptor) }
            return
        }
    }
}

fillStandardDescriptors()
run(Array(CommandLine.arguments.dropFirst())).end()
