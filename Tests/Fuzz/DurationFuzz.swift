import Contract
import RoomCore
import Service

// Durations and instants, in both spellings: as commands carry them and as people write them in options.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDuration(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    var bits: UInt64 = 0
    for byte in bytes.prefix(8) { bits = bits << 8 | UInt64(byte) }
    let text = String(decoding: bytes, as: UTF8.self)
    let values: [JSONValue] = [
        .real(Double(bitPattern: bits)), .integer(Int64(bitPattern: bits)), .string(text),
    ]
    for value in values { checkSpan(Contract.DurationText.span(value)) }
    checkSpan(Contract.DurationText.span(option: text))
    for unit in [Service.DurationText.BareUnit.seconds, .minutes] {
        guard let milliseconds = Service.DurationText.parse(text, bare: unit) else { continue }
        check(milliseconds >= 0, "a negative duration was read")
        let again = Service.DurationText.parse(Service.DurationText.format(milliseconds))
        check(again == milliseconds, "\(milliseconds) ms do not come back")
    }
    if let instant = TimeText.instant(text) {
        check(TimeText.text(instant) == text, "an instant does not come back")
        check(FormattedTime.parse(text) == instant.milliseconds, "two readings of an instant differ")
    } else {
        check(FormattedTime.parse(text) == nil, "only one of two reads this instant")
    }
    _ = TimeText.text(Instant(milliseconds: Int64(bitPattern: bits)))
    _ = FormattedTime.iso(Int64(bitPattern: bits))
    return 0
}

private func checkSpan(_ result: Result<TimeSpan, Contract.DurationText.Problem>) {
    guard case .success(let span) = result else { return }
    check(span >= TimeSpan(milliseconds: 1) && span <= .longest, "\(span.milliseconds) ms were taken")
    let again = Contract.DurationText.span(Contract.DurationText.text(span))
    check(again == .success(span), "\(span.milliseconds) ms do not come back")
}
