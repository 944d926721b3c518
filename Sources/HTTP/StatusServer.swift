package import Metrics
package import Service

/// The HTTP side of a service: a board and the server that shows it.
package final class StatusServer: Sendable {
    package let board: StatusBoard
    private let server: HTTPServer

    package init(
        address: Configuration.HTTPAddress, source: MetricDefinition.Source, version: String
    ) throws(ListenError) {
        let board = StatusBoard(
            source: source, version: version, startedAt: SystemClock().nowMilliseconds())
        self.board = board
        server = try HTTPServer(host: address.host, port: address.port) { board.answer($0) }
    }

    /// Starts it where an address is configured. Says why where it cannot be bound.
    package static func start(
        _ address: Configuration.HTTPAddress?, source: MetricDefinition.Source, version: String, log: Log
    ) throws(ListenError) -> StatusServer? {
        guard let address else { return nil }
        do throws(ListenError) {
            let server = try StatusServer(address: address, source: source, version: version)
            log.info(
                "serving metrics and health",
                ["address": SocketAddress.text(host: address.host, port: address.port)])
            return server
        } catch {
            log.error("giving up: the HTTP address cannot be bound", ["error": error.description])
            throw error
        }
    }

    package func stop() { server.stop() }
}
