/// The kinds of fault that a simulation injects.
package enum Fault: String, CaseIterable, Sendable {
    // Connections and the broker
    case cutConnection, halfOpen, closedChannel, brokerRestart, blocked
    // Confirms
    case lostConfirm, lateConfirm, refusedEvent, refusedReply, refusedLetter
    // Objects
    case deletedQueue, deletedExchange, purgedTicks
    /// Ticks, questions and their answers: what no broker promises to keep.
    case lostTransient
    // Publishers
    case repeatedCommand, unknownPublish, reusedKey, invalidCommand, expiredCommand, oversizedCommand,
        strayTick
    // The store
    case storeOutage, storeError, unknownCommit, slowStore
    // Processes
    case workerCrash, crashInsideStore, crashAtSending, workerStop, schedulerCrash, schedulerStop
    case poisonCommand
    // Time
    case frozenProcess, suspendedMachine, clockStep

    var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
