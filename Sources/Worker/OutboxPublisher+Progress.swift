package import RoomCore
package import Store

/// What the publisher is told and tells.
extension OutboxPublisher {
    package struct Limits {
        /// Publications on their way at one time.
        package var inFlight = 4096
        /// Milliseconds without a confirm after which a room's events are sent again; doubles up to eightfold.
        package var confirmTimeout: Int64 = 10_000
        /// Milliseconds between two tries of a refused event.
        package var retryInterval: Int64 = 1_000
        /// Milliseconds from a room's first refusal until its refused events are passed over.
        package var patience: Int64 = 60_000
        /// Milliseconds without a refusal after which a room's refusals are forgotten.
        package var memory: Int64 = 600_000

        package init() {}
    }

    /// One event to publish, under the number by which its end is told.
    package struct Sending {
        package let id: UInt64
        package let event: OutboxMessage
    }

    /// What became of events since it was last asked.
    package struct Progress {
        /// Jobs whose event has had its first confirm or refusal, one mention an event.
        package var settledJobs: [UInt64] = []
        /// Positions that are done with: confirmed, or passed over.
        package var finished: [Int64] = []
        /// Lost to those who refused them; to everybody where they close the channel.
        package var passedOver: [(event: OutboxMessage, closesChannel: Bool)] = []
        /// Events that were found to close the channel, and hold back their room from now on.
        package var convicted: [OutboxMessage] = []
        /// Rooms that began to be refused.
        package var refusedRooms: [RoomID] = []
        /// Rooms whose events were sent again because no confirm came in time.
        package var overdueRooms: [RoomID] = []
    }
}
