import AMQP
import Service

/// Whether one node of the broker lets this user in.
enum NodeCheck {
    /// - Returns: its version.
    static func run(
        _ composition: Composition, _ node: Endpoint, until deadline: Int64
    ) -> Result<String, AMQPError> {
        var configuration = composition.link("overtime check")
        configuration.endpoints = Endpoints(node)
        let mailbox = Mailbox<LinkEvent>()
        let link = Link(configuration: configuration, channels: { [] }, observer: { mailbox.put($0) })
        link.start()
        defer { link.stop() }
        while true {
            let left = deadline - MonotonicClock.milliseconds()
            guard left > 0 else {
                return .failure(
                    AMQPError(scope: .connection, kind: .unreachable, text: "no answer within the time-out"))
            }
            for event in mailbox.take(timeoutMilliseconds: left) {
                switch event {
                case .connected(let version, _, _): return .success(version)
                case .disconnected(let error, _): return .failure(error)
                default: break
                }
            }
        }
    }
}
