/// The help texts.
enum Help {
    static var program: String {
        let commands = ProgramCommand.all.map { "  \(pad($0.name, 15))\($0.summary)" }.joined(separator: "\n")
        return """
            overtime keeps the clock of video rooms: sessions that warn, are extended and end on time.

            usage: overtime COMMAND [OPTIONS]

            commands:
            \(commands)

              --help      print this, or with a command its own help
              --version   print the version

            Exit codes: 0 done, 1 refused, 2 wrong command line, 3 no reply in time, 78 wrong for good.
            """
    }

    static func command(_ command: ProgramCommand) -> String {
        var text = "usage: overtime \(command.name) \(command.usage)\n\n\(command.details)\n\noptions:\n"
        text += lines(command.options + [.help])
        text += "\nconfiguration (each also in the file given by --config, and as an environment variable):\n"
        text += lines([.config] + Option.configuration)
        return text
    }

    private static func lines(_ options: [Option]) -> String {
        options.map { option in
            let left = "--\(option.name)" + (option.placeholder.map { " \($0)" } ?? "")
            return "  \(pad(left, 28))\(option.help)\n"
        }.joined()
    }

    private static func pad(_ text: String, _ width: Int) -> String {
        text.count >= width ? text + "  " : text + String(repeating: " ", count: width - text.count)
    }
}
