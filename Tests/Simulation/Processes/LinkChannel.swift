import AMQP

/// One channel number of a simulated link, through all lives of its channel.
struct LinkChannel {
    enum State: Equatable {
        case none, opening, open
        /// With the error that its end will tell.
        case closing(AMQPError?)
    }

    private(set) var generation: UInt64 = 0
    var state = State.none
    var outgoing: [Publication] = []
    /// Sent and without an outcome, in order.
    var unsettled: [UInt64] = []
    var openTags: Set<UInt64> = []
    var closesWhenSent = false
    var opensAt: Int64?
    var openedAt: Int64?
    var failures = 0

    var reason: AMQPError? { if case .closing(let error) = state { error } else { nil } }

    func isOpen(_ generation: UInt64) -> Bool { state == .open && self.generation == generation }

    mutating func begin(generation: UInt64) {
        self.generation = generation
        state = .opening
        opensAt = nil
        openTags = []
    }

    mutating func end() {
        state = .none
        outgoing = []
        unsettled = []
        openTags = []
        closesWhenSent = false
        openedAt = nil
    }

    /// A delivery of this life that has not been settled yet.
    mutating func takeOpen(_ tag: DeliveryTag) -> UInt64? {
        guard isOpen(tag.generation), openTags.remove(tag.number) != nil else { return nil }
        return tag.number
    }

    /// Takes outcomes; false for those of another life.
    mutating func settle(_ ids: [UInt64], _ generation: UInt64) -> Bool {
        guard self.generation == generation, state != .none else { return false }
        for id in ids { if let at = unsettled.firstIndex(of: id) { unsettled.remove(at: at) } }
        return true
    }
}
