/// What is answered to a request.
package struct HTTPAnswer: Sendable, Equatable {
    package let status: UInt32
    package let contentType: String
    package let body: String

    package init(_ status: UInt32, _ body: String, contentType: String = "text/plain; charset=utf-8") {
        self.status = status
        self.contentType = contentType
        self.body = body
    }
}
