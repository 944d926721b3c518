package import AMQP
internal import RoomCore

/// A dead letter as the command that it was: what `DeadLetter` moved away goes back where that is possible.
///
/// The key stays what it was, in the body or as message id, so that retrying a command that was applied after all
/// changes nothing.
package struct RestoredCommand: Hashable, Sendable {
    package let routingKey: ShortString
    package let properties: Properties
    /// What the command had and could not be given back, each a few words for people.
    package let leftOut: [String]

    /// - Parameter user: whom the connection is logged in as: the broker refuses a message under another name.
    package init(_ letter: Letter, user: ShortString?) {
        var properties = letter.properties
        var leftOut: [String] = []
        let headers = letter.properties.headers
        let owner = letter.properties.userID ?? Self.text(headers?[DeadLetter.userIDHeader])
        properties.userID = owner == user ? owner : nil
        if let owner, owner != user { leftOut.append("user_id \(owner)") }
        let expiration = letter.properties.expiration ?? Self.text(headers?[DeadLetter.expirationHeader])
        if let expiration { leftOut.append("expiration \(expiration) ms") }
        properties.expiration = nil
        // The broker takes this name only from who consumes it, and closes the channel on anybody else.
        if properties.replyTo == "amq.rabbitmq.reply-to" {
            properties.replyTo = nil
            leftOut.append("reply_to amq.rabbitmq.reply-to")
        }
        for (name, words) in Self.copies where headers?[name] != nil { leftOut.append(words) }
        if let dropped = headers?[DeadLetter.droppedHeader]?.text {
            leftOut.append("headers that the dead letter could not take over (\(dropped))")
        } else if letter.properties.headersTooDeep {
            leftOut.append("headers, which are nested too deep")
        }
        let kept = (headers?.entries ?? []).filter { !Self.isOurs($0.key) && !BrokerHeaders.isNote($0.key) }
        properties.headers = kept.isEmpty ? nil : Table(kept)
        properties.headersTooDeep = false
        self.properties = properties
        self.leftOut = leftOut
        routingKey = letter.echo.room.flatMap { ShortString($0.text) } ?? letter.routingKey
    }

    private static let copies: [(ShortString, String)] = [
        ("CC", "the header CC"), (DeadLetter.ccHeader, "the header CC"),
        ("BCC", "the header BCC"), (DeadLetter.bccHeader, "the header BCC"),
    ]

    private static func isOurs(_ name: ShortString) -> Bool {
        name == "CC" || name == "BCC" || name.bytes.starts(with: "x-overtime-".utf8)
    }

    private static func text(_ value: FieldValue?) -> ShortString? {
        guard case .string(let bytes)? = value else { return nil }
        return ShortString(bytes: bytes)
    }
}
