internal import AMQP
internal import Contract

/// The connection that reads the dead letters: one channel that holds them, one that only counts.
///
/// The broker answers a close before it has given back what the channel held, so a look that began at once would find too
/// little. After a close the letters are counted until those that were kept are there again. They come back all at
/// once, so where nothing was kept the last acknowledgement is not sent, and that letter is the sign; the next look
/// settles it.
final class DeadLetterReader {
    enum Channel {
        static let letters = 0
        static let counting = 1
    }

    private let link: Link
    private var waiting: [DeliveryTag] = []
    private var held: DeliveryTag?
    /// Acknowledged in the present look, the held one included.
    private(set) var settledCount = 0

    init(
        connection: LinkConfiguration, queue: ShortString, observer: @escaping @Sendable ([LinkEvent]) -> Void
    ) {
        let declaration = Declaration.queue(
            name: queue, durable: true, exclusive: false, autoDelete: false, arguments: [:])
        let step = DeclarationStep(declaration, mode: .passive)
        let letters = ChannelPlan(
            declare: [step], prefetch: UInt16.max, consumers: [ConsumerPlan(queue: queue, tag: "dead")],
            maximumBodyBytes: DeadLetterBox.maximumBodyBytes, countsMessages: true)
        let counting = ChannelPlan(declare: [step], countsMessages: true, startsOpen: false)
        link = Link(configuration: connection, channels: { [letters, counting] }, observer: observer)
        link.start()
    }

    func stop() { link.stop() }

    func beginLook() {
        waiting = []
        held = nil
        settledCount = 0
        link.closeChannel(Channel.counting)
        link.openChannel(Channel.letters)
    }

    func acknowledge(_ tag: DeliveryTag) {
        settledCount += 1
        waiting.append(tag)
    }

    /// In one go, which the broker hears best. The last one is kept back: before an older one that is open each other
    /// would need a frame of its own.
    func flush() {
        guard !waiting.isEmpty else { return }
        if let held { waiting.insert(held, at: 0) }
        held = waiting.popLast()
        link.acknowledge(waiting, on: Channel.letters)
        waiting = []
    }

    /// Ends a look in which `looked` letters came, and says how many must be there again afterwards.
    ///
    /// - Parameter mayHold: whether the last letter would be known again, so that its acknowledgement can be kept back.
    func endLook(looked: Int, mayHold: Bool) -> (awaited: Int, holds: Bool) {
        flush()
        let kept = looked - settledCount
        defer { link.closeChannel(Channel.letters) }
        // A single acknowledgement is never lost.
        if kept == 0, settledCount > 1, mayHold { return (1, true) }
        if let held { link.acknowledge([held], on: Channel.letters) }
        return (kept, false)
    }

    func count() { link.openChannel(Channel.counting) }
    func stopCounting() { link.closeChannel(Channel.counting) }
}
