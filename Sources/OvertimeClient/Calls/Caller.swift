import AMQP
import Contract
import Service

/// Publishes questions and hands each its answer, on one kept connection with a queue of its own, however many are under
/// way at once.
///
/// Waits for a broker that cannot be reached, and asks again after a lost connection: what it sends must be safe to
/// repeat, as commands with an id and queries are.
final class Caller: Sendable {
    /// One message and whether it is to be answered.
    struct Question: Sendable {
        /// Commands and queries have a channel each: a right that is missing for one must not end the other.
        let kind: Kind
        let exchange: ShortString
        let routingKey: ShortString
        let body: [UInt8]
        let isPersistent: Bool
        var waitsForReply = true

        enum Kind: Int, Sendable, CaseIterable {
            case command = 1
            case query = 2
        }
    }

    private let calls: CallTable
    private let link: Link

    init(connection: LinkConfiguration, topology: Topology, component: String) {
        let queue = OwnReplies(topology: topology, component: component)
        let calls = CallTable(queue: queue, user: connection.publisher)
        self.calls = calls
        link = Link(
            configuration: connection,
            channels: {
                [
                    ChannelPlan(
                        declare: queue.declarations,
                        consumers: [ConsumerPlan(queue: queue.name, tag: "replies", noAck: true)])
                ] + Question.Kind.allCases.map { _ in ChannelPlan(confirms: true) }
            },
            observer: { calls.handle($0) })
        calls.attach(link)
    }

    /// Waits until questions can be asked.
    func ready(timeout: Duration) async throws(OvertimeError) {
        _ = try await wait(for: nil, timeout: timeout)
    }

    /// The answer's body; empty where none is waited for and the broker has confirmed.
    func ask(_ question: Question, timeout: Duration) async throws(OvertimeError) -> [UInt8] {
        try await wait(for: question, timeout: timeout)
    }

    private func wait(for question: Question?, timeout: Duration) async throws(OvertimeError) -> [UInt8] {
        // Not before the first call: a client may only listen.
        link.start()
        let number = calls.reserve()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                calls.begin(number, question, continuation, timeout: timeout)
            }
        } onCancel: {
            calls.finish(number, .failure(.cancelled))
        }
        return try result.get()
    }

    /// Fails what is under way with `closed`, and ends the connection without waiting for it.
    func requestClose() {
        calls.close()
        link.requestStop()
    }

    /// The same, and waits: at most two seconds.
    func close() {
        calls.close()
        link.stop()
    }
}

extension LinkConfiguration {
    /// Whom the broker vouches for as the sender of a message: what an operator may do hangs on it. Nil with a
    /// certificate, since only the broker knows whom it names, and refuses any other.
    var publisher: ShortString? { login == .password ? ShortString(endpoints.user) : nil }
}
