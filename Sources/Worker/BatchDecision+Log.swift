import AMQP
import Contract
import RoomCore
import Service

extension BatchDecision {
    /// One line for each event, for whoever follows a room through the log: what changes when a session ends stands
    /// there always, who comes and goes only where `log.level` is debug.
    func logEvents(to log: Log) {
        guard !origins.isEmpty else { return }
        log.together { lines in
            for origin in origins {
                if EventType.timing.contains(EventType(origin.event.kind)) {
                    lines.info("event", origin.logFields)
                } else {
                    lines.debug("event", origin.logFields)
                }
            }
        }
    }
}

extension EventOrigin {
    fileprivate var logFields: LogFields {
        var fields = LogFields(capacity: 7)
        fields.append("type", .string(EventType(event.kind).rawValue))
        fields.append("room", .string(event.room.text))
        fields.append("session", event.session.map(LogValue.int) ?? .null)
        fields.append("sequence", .int(event.sequence))
        if let id = command?.command.id { fields.append("id", .string(id.text)) }
        if let publisher = command?.delivery.properties.userID {
            fields.append("publisher", .string(publisher.description))
        }
        if let trace = command?.trace { fields.append("trace", .string(String(trace.traceID))) }
        return fields
    }
}
