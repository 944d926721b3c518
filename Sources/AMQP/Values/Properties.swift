/// The fourteen properties of a message. Absent is `nil`; present but empty stays empty.
package struct Properties: Hashable, Sendable {
    package var contentType: ShortString?
    package var contentEncoding: ShortString?
    package var headers: Table?
    package var deliveryMode: UInt8?
    package var priority: UInt8?
    package var correlationID: ShortString?
    package var replyTo: ShortString?
    package var expiration: ShortString?
    package var messageID: ShortString?
    package var timestamp: UInt64?
    package var type: ShortString?
    package var userID: ShortString?
    package var appID: ShortString?
    package var clusterID: ShortString?

    /// The headers nested deeper than 64 levels and were not taken over: `headers` is `nil` although there were
    /// some. Such a message is for the dead letters, and goes there without its headers.
    package var headersTooDeep: Bool

    package init(
        contentType: ShortString? = nil,
        contentEncoding: ShortString? = nil,
        headers: Table? = nil,
        deliveryMode: UInt8? = nil,
        priority: UInt8? = nil,
        correlationID: ShortString? = nil,
        replyTo: ShortString? = nil,
        expiration: ShortString? = nil,
        messageID: ShortString? = nil,
        timestamp: UInt64? = nil,
        type: ShortString? = nil,
        userID: ShortString? = nil,
        appID: ShortString? = nil,
        clusterID: ShortString? = nil
    ) {
        self.contentType = contentType
        self.contentEncoding = contentEncoding
        self.headers = headers
        self.deliveryMode = deliveryMode
        self.priority = priority
        self.correlationID = correlationID
        self.replyTo = replyTo
        self.expiration = expiration
        self.messageID = messageID
        self.timestamp = timestamp
        self.type = type
        self.userID = userID
        self.appID = appID
        self.clusterID = clusterID
        self.headersTooDeep = false
    }
}
