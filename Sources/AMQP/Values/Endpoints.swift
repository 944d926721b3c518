/// Where the nodes of one broker are: at least one, in the order in which they were given.
package struct Endpoints: Hashable, Sendable {
    package let all: [Endpoint]

    /// The same on all nodes.
    package let user: String

    package init(_ one: Endpoint) {
        all = [one]
        user = one.user
    }

    /// - Parameter urls: one URL a node, of the same user and virtual host; none at all is as wrong as an empty one.
    package init(urls: [String]) throws(EndpointError) {
        var all: [Endpoint] = []
        for url in urls { all.append(try Endpoint(url: url)) }
        guard let first = all.first else { throw .noScheme }
        guard all.allSatisfy({ $0.user == first.user }) else { throw .differing(part: "user") }
        guard all.allSatisfy({ $0.virtualHost == first.virtualHost }) else {
            throw .differing(part: "virtual host")
        }
        self.all = all
        user = first.user
    }
}

extension Endpoints: CustomStringConvertible, CustomDebugStringConvertible {
    /// Safe to log, as each of them is.
    package var description: String { all.map(\.description).joined(separator: ",") }
    package var debugDescription: String { description }
}
