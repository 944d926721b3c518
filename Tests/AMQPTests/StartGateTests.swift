import AMQP
import Testing

@Suite("The gate of a start")
struct StartGateTests {
    private let part = StartGate.Part(link: "consumer", channel: 0)
    private let refused = AMQPError(
        scope: .connection, kind: .accessRefused, text: "no", isConfiguration: true)

    @Test("a link that ends by itself before anything was open is a reason to give up")
    func stopped() {
        var gate = StartGate(expecting: [part])
        let error = AMQPError(scope: .connection, kind: .resources, text: "no thread")
        #expect(gate.note(.disconnected(error, retryInMilliseconds: 0), of: "consumer") == nil)
        #expect(gate.note(.stopped, of: "consumer") == error)
    }

    @Test("what is wrong for good is given up after its tries, and never once all was open")
    func tries() {
        let failure = LinkEvent.disconnected(refused, retryInMilliseconds: 0)
        var gate = StartGate(expecting: [part], tries: 3)
        for _ in 0..<2 { #expect(gate.note(failure, of: "consumer") == nil) }
        var open = gate
        #expect(gate.note(failure, of: "consumer") == refused)
        #expect(open.note(.channelOpened(0, generation: 1), of: "consumer") == nil && open.hasStarted)
        for _ in 0..<9 { #expect(open.note(failure, of: "consumer") == nil) }
    }
}
