extension ConfigurationKey {
    /// The part of `--help` about configuration: flag, variable, meaning and default of every key, aligned.
    package static func help() -> String {
        let rows = all.map { key in
            let usual = key.defaultText.isEmpty ? "none" : key.defaultText
            return ("\(key.flag) \(key.placeholder)", key.variable, "\(key.help) (default \(usual))")
        }
        let flagWidth = rows.map(\.0.count).max() ?? 0
        let variableWidth = rows.map(\.1.count).max() ?? 0
        return rows.map { flag, variable, text in
            "  \(padded(flag, flagWidth))  \(padded(variable, variableWidth))  \(text)\n"
        }.joined()
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
