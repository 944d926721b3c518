/// One connection that keeps itself: it connects, opens its channels, and comes back after any loss.
package final class Link: Sendable {
    package init(
        configuration: LinkConfiguration, channels: @escaping @Sendable () -> [ChannelPlan],
        observer: @escaping @Sendable ([LinkEvent]) -> Void
    ) {}

    package func start() {}
    package func publish(_ publications: [Publication], on channel: Int, generation: UInt64) {}
    package func acknowledge(_ tags: [DeliveryTag], on channel: Int) {}
    package func reject(_ tag: DeliveryTag, requeue: Bool, on channel: Int) {}
    package func closeChannel(_ channel: Int) {}
    package func openChannel(_ channel: Int) {}
    package func reconnect() {}
    package func stop() {}
}
