import AMQP

/// Where an answer goes, taken from the question's own properties.
struct ReplyAddress {
    let exchange: ShortString
    let queue: ShortString
    /// Copied as the bytes that came.
    let correlationID: ShortString?
    /// The properties of an answer.
    var properties: Properties {
        Properties(
            contentType: "application/json", deliveryMode: 2, correlationID: correlationID, appID: "overtime")
    }
}
