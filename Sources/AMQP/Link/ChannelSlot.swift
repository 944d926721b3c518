/// One channel number of a link, through all lives of its channel.
struct ChannelSlot: Sendable {
    let index: Int
    var plan: ChannelPlan
    /// The present life; `nil` between two.
    var machine: ChannelMachine?
    /// Publications of the present life that are not sent yet.
    private var outgoing: [Publication] = []
    private var sent = 0
    /// To be closed as soon as nothing is left to send.
    var closesWhenSent = false
    /// When the next life begins; `nil` if it is not to begin.
    var opensAt: Instant?
    /// When a missing answer counts as a lost connection.
    var answerDueAt: Instant?
    var openedAt: Instant?
    var failures = 0

    init(index: Int, plan: ChannelPlan) {
        self.index = index
        self.plan = plan
    }

    /// The number on the wire; 0 is the connection itself.
    var number: Int { index + 1 }

    var hasOutgoing: Bool { sent < outgoing.count }
    var outgoingCount: Int { outgoing.count - sent }

    mutating func enqueue(_ publications: [Publication]) {
        outgoing.append(contentsOf: publications)
    }

    mutating func dequeue() -> Publication? {
        guard sent < outgoing.count else { return nil }
        let publication = outgoing[sent]
        sent += 1
        if sent == outgoing.count {
            outgoing.removeAll(keepingCapacity: true)
            sent = 0
        } else if sent >= 1024 {
            outgoing.removeFirst(sent)
            sent = 0
        }
        return publication
    }

    /// Ends a life: forgets its publications and returns the numbers of those never sent.
    mutating func endLife() -> [UInt64] {
        let unsent = outgoing[sent...].map(\.id)
        outgoing = []
        sent = 0
        machine = nil
        closesWhenSent = false
        answerDueAt = nil
        openedAt = nil
        return unsent
    }
}
