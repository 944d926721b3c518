import AMQP
import Contract
import RoomCore

/// Decodes a body given as text.
func decode(_ body: String, _ properties: Properties = Properties()) -> Result<Command, InvalidCommand> {
    CommandDecoder.decode(body: Array(body.utf8), properties: properties)
}

func invalid(_ body: String, _ properties: Properties = Properties()) -> InvalidCommand? {
    if case .failure(let invalid) = decode(body, properties) { invalid } else { nil }
}

extension [UInt8] {
    /// Bytes as text, for comparing with what a test spells out.
    var text: String { String(decoding: self, as: UTF8.self) }
}
