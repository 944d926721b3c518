import AMQP
import Contract
import Store

extension OutboxDraft {
    /// The AMQP properties of a stored event, the same at every publish.
    var properties: Properties {
        EventEncoder.properties(
            type: type, id: messageID, room: room, sequence: sequence, seconds: timestamp, trace: trace)
    }
}
