/// What the layers of a configuration come to: what is in force, where it was set, and what is wrong.
package struct ConfigurationReading: Sendable {
    /// One key, for people who ask what counts and why.
    package struct Setting: Sendable, Equatable {
        package let path: String
        /// As it would be written, without secrets.
        package let value: String
        /// `default`, or where it was set.
        package let origin: String
    }

    /// Of a wrong value what stood before it; to be used only where there are no problems.
    package let configuration: Configuration
    package let problems: [String]
    let origins: [String: ConfigurationOrigin]

    /// Every key in the order of `--help`.
    package var settings: [Setting] {
        ConfigurationKey.all.map { key in
            Setting(path: key.path, value: key.show(configuration), origin: origin(of: key.path))
        }
    }

    /// Where the value in force of a key was set, in words.
    package func origin(of path: String) -> String {
        origins[path]?.description ?? "default"
    }
}
