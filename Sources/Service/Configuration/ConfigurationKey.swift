/// One thing that can be set: its names, its default as text, and how a text becomes a value.
///
/// One table of these drives loading, `--help` and the test of the sample file, so that they cannot disagree.
package struct ConfigurationKey: Sendable {
    /// What a configuration file may hold for the key.
    package enum Kind: Sendable {
        case text, number, boolean, duration, list
    }

    /// As in the file, with dots: `amqp.url`.
    package let path: String
    /// `OVERTIME_AMQP_URL`.
    package let variable: String
    /// `OVERTIME_AMQP_URL_FILE`, which names a file with the value; nil where no value can be a secret.
    package let fileVariable: String?
    /// `--amqp-url`.
    package let flag: String
    /// What stands for the value in `--help`.
    package let placeholder: String
    package let kind: Kind
    package let defaultText: String
    /// One line for `--help`.
    package let help: String
    /// What would be right, as the end of a sentence that began with what is wrong.
    package let expected: String
    /// A value that must not be repeated in an error or shown by `overtime config`.
    let isSecret: @Sendable (String) -> Bool
    /// Puts the value of a text into a configuration; false where the text means none.
    let apply: @Sendable (String, inout Configuration) -> Bool
    /// The value in force, as it would be written, without secrets.
    package let show: @Sendable (Configuration) -> String

    init(
        _ path: String, variable: String, placeholder: String, kind: Kind, default defaultText: String,
        help: String, expected: String, takesFile: Bool = false,
        isSecret: @escaping @Sendable (String) -> Bool = { _ in false },
        show: @escaping @Sendable (Configuration) -> String,
        apply: @escaping @Sendable (String, inout Configuration) -> Bool
    ) {
        self.path = path
        self.variable = variable
        self.fileVariable = takesFile ? variable + "_FILE" : nil
        self.flag = "--" + String(path.map { $0 == "." ? "-" : $0 })
        self.placeholder = placeholder
        self.kind = kind
        self.defaultText = defaultText
        self.help = help
        self.expected = expected
        self.isSecret = isSecret
        self.show = show
        self.apply = apply
    }

    /// The objects of a file that hold keys: `amqp`, `rooms`, …
    static let groups: [String] = Set(
        all.compactMap { key in
            key.path.firstIndex(of: ".").map { String(key.path[..<$0]) }
        }
    ).sorted()

    /// The key of a flag such as `--amqp-url`, for the command line's parser.
    package static func named(flag: String) -> ConfigurationKey? {
        all.first { $0.flag == flag }
    }
}
