/// A value that prints as `<redacted>` wherever it may end up.
package struct Secret: Hashable, Sendable {
    /// The value itself, for the one place that sends it.
    package let value: String

    package init(_ value: String) {
        self.value = value
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<redacted>" }
    package var debugDescription: String { "<redacted>" }
    /// Without it `dump` and interpolation of an enclosing value would walk into the stored property.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
