import FoundationEssentials
import RoomCore

/// A definition as the JSON text that stores keep, canonical: equal definitions have equal texts.
enum DefinitionText {
    static func encode(_ definition: Definition) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(definition)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Nil also for what decodes but would break the rules' arithmetic.
    static func decode(_ text: String) -> Definition? {
        guard let decoded = try? JSONDecoder().decode(Definition.self, from: Data(text.utf8)) else {
            return nil
        }
        let windows = decoded.policy.windows
        let isSound =
            decoded.duration > .zero && (1...Policy.mostWindows).contains(windows.count)
            && windows.allSatisfy { $0 > .zero } && zip(windows, windows.dropFirst()).allSatisfy { $0 > $1 }
            && decoded.policy.extension.min <= decoded.policy.extension.max
        return isSound ? decoded : nil
    }
}
