/// The version of the program, as `--version`, the log and the broker's list of connections show it.
enum Version {
    static let current = "0.1.0"
}
