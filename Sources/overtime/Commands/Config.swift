import Service

extension ProgramCommand {
    static let configuration = ProgramCommand(
        name: "config", summary: "print the configuration in force and where each value comes from",
        usage: "[OPTIONS]",
        details: """
            Reads the configuration as every command does and prints each key, its value without secrets, and the file, variable
            or flag that set it. Connects to nothing. Exits with 78 and names everything that is wrong, where something is.
            """,
        options: []
    ) { options throws(UsageError) in
        try refuseArguments(options)
        let settings = Composition.load(options).settings
        let pathWidth = settings.map(\.path.count).max() ?? 0
        let valueWidth = settings.map(\.value.count).max() ?? 0
        for setting in settings {
            let path = EventText.pad(setting.path, pathWidth)
            Output.line("\(path)  \(EventText.pad(setting.value, valueWidth))  \(setting.origin)")
        }
        return .ok
    }
}
