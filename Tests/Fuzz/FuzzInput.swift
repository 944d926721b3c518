/// Values drawn from the fuzzer's bytes; what is asked for beyond their end is zero.
struct FuzzInput {
    private(set) var rest: ArraySlice<UInt8>

    init(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        rest = Array(UnsafeBufferPointer(start: start, count: count))[...]
    }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
    mutating func flag() -> Bool { byte() & 1 == 1 }

    mutating func bytes(_ count: Int) -> [UInt8] {
        let taken = rest.prefix(count)
        rest = rest.dropFirst(count)
        return Array(taken)
    }

    /// Mostly small, and sometimes at the edge of what the type holds: that is where arithmetic breaks.
    mutating func number() -> UInt64 {
        switch byte() {
        case 0xFF: .max
        case 0xFE: .max - UInt64(byte())
        case 0xFD: UInt64(Int64.max) + UInt64(byte()) - 128
        case 0xFC: UInt64(byte()) << 8 | UInt64(byte())
        case let small: UInt64(small)
        }
    }

    mutating func takeLast() -> UInt8? { rest.popLast() }

    mutating func takeLast(_ count: Int) -> [UInt8] {
        let taken = rest.suffix(count)
        rest = rest.dropLast(count)
        return Array(taken)
    }
}

/// A broken invariant ends the process, which is how libFuzzer learns of it.
func check(_ isTrue: Bool, _ what: @autoclosure () -> String) {
    if !isTrue { fatalError(what()) }
}
