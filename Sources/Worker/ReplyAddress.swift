import AMQP

/// Where an answer goes, taken from the question's own properties.
struct ReplyAddress {
    let exchange: ShortString
    let queue: ShortString
    /// Copied as the bytes that came.
    let correlationID: ShortString?
    // Made once: a literal is an array of its own each time.
    private static let contentType: ShortString = "application/json"
    private static let application: ShortString = "overtime"

    /// The properties of an answer.
    var properties: Properties {
        Properties(
            contentType: Self.contentType, deliveryMode: 2, correlationID: correlationID,
            appID: Self.application)
    }
}
