import AMQP
import Worker

/// A connection that only notes what it is asked.
///
/// `@unchecked Sendable` because the tests drive the worker on one thread.
final class FakeLink: LinkControl, @unchecked Sendable {
    enum Call: Equatable {
        case publish([Publication], channel: Int, generation: UInt64)
        case acknowledge([DeliveryTag], channel: Int)
        case reject(DeliveryTag, requeue: Bool, channel: Int)
        case open(Int)
        case close(Int)
    }

    private var calls: [Call] = []
    private let fuse: Fuse

    init(fuse: Fuse) { self.fuse = fuse }

    /// What was asked since the last call.
    func take() -> [Call] {
        defer { calls = [] }
        return calls
    }

    private func note(_ call: Call) { if fuse.pass() { calls.append(call) } }

    func publish(_ publications: [Publication], on channel: Int, generation: UInt64) {
        note(.publish(publications, channel: channel, generation: generation))
    }
    func acknowledge(_ tags: [DeliveryTag], on channel: Int) {
        note(.acknowledge(tags, channel: channel))
    }
    func reject(_ tag: DeliveryTag, requeue: Bool, on channel: Int) {
        note(.reject(tag, requeue: requeue, channel: channel))
    }
    func openChannel(_ channel: Int) { note(.open(channel)) }
    func closeChannel(_ channel: Int) { note(.close(channel)) }
}
