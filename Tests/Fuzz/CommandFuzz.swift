import AMQP
import Contract
import RoomCore

// The decoder of commands, with the properties that it looks at.
//
// An input is a body as it would be sent, so that any JSON file is a seed. If its last byte has the highest bit set,
// the lower ones say which properties there are, and they are taken from the end: each a length and its bytes.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCommand(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    var input = FuzzInput(start, count)
    let properties = drawProperties(&input)
    let body = Array(input.rest)
    let result = CommandDecoder.decode(body: body, properties: properties)
    check(result == CommandDecoder.decode(body: body, properties: properties), "two readings differ")
    switch result {
    case .success(let command): checkCommand(command, body)
    case .failure(let invalid): checkDetail(invalid.detail)
    }
    checkLetter(properties)
    return 0
}

private func drawProperties(_ input: inout FuzzInput) -> Properties {
    var properties = Properties()
    guard let flags = input.rest.last, flags & 0x80 != 0 else { return properties }
    _ = input.takeLast()
    func draw() -> ShortString? {
        let length = Int(input.takeLast() ?? 0)
        return ShortString(bytes: input.takeLast(length))
    }
    if flags & 0x01 != 0 { properties.contentType = draw() }
    if flags & 0x02 != 0 { properties.contentEncoding = draw() }
    if flags & 0x04 != 0 { properties.messageID = draw() }
    if flags & 0x08 != 0 { properties.type = draw() }
    if flags & 0x10 != 0 { properties.userID = draw() }
    if flags & 0x20 != 0 { properties.expiration = draw() }
    if flags & 0x40 != 0, let key = draw() {
        properties.headers = Table([Table.Entry(key: key, value: .uint64(.max))])
    }
    return properties
}

private func checkCommand(_ command: Command, _ body: [UInt8]) {
    check(body.count <= StrictJSON.maximumBytes, "a body too large was taken")
    check((1...128).contains(command.room.text.utf8.count), "the room's length")
    check(!command.room.text.unicodeScalars.contains(where: PrintableText.isControl), "a control character")
    let encoded = CommandEncoder.encode(command)
    let again = CommandDecoder.decode(body: encoded, properties: Properties())
    // With every character escaped a command may grow beyond the limit; nothing else may be lost.
    if encoded.count <= StrictJSON.maximumBytes { check(again == .success(command), "it does not come back") }
    check(!CommandText.canonical(command).isEmpty, "no canonical text")
}

func checkDetail(_ detail: String) {
    check(!detail.isEmpty && detail.utf8.count <= PrintableText.maximumBytes, "the detail's length")
    check(!detail.unicodeScalars.contains(where: PrintableText.isControl), "a control character in a detail")
}

/// Whatever came in can go to the dead letters.
private func checkLetter(_ properties: Properties) {
    let letter = DeadLetter.properties(original: properties, reason: "not_json", detail: "why")
    check(letter.userID == nil && letter.expiration == nil, "the broker would refuse or delete the letter")
    check(letter.messageID == properties.messageID && letter.type == properties.type, "a property was lost")
}
