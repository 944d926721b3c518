import RoomCore
import Testing

@testable import OvertimeClient

struct SequencesTests {
    @Test("a copy is told, and a gap with both its sides")
    func findings() {
        var sequences = Sequences()
        #expect(sequences.take(4, of: "a") == .next)
        #expect(sequences.take(5, of: "a") == .next)
        #expect(sequences.take(5, of: "a") == .copy)
        #expect(sequences.take(4, of: "a") == .copy)
        #expect(sequences.take(8, of: "a") == .gap(after: 5))
        #expect(sequences.take(9, of: "a") == .next)
        #expect(sequences.take(1, of: "b") == .next)
    }

    @Test("what was seen in an earlier life is a copy")
    func seen() {
        var sequences = Sequences(seen: ["a": 3])
        #expect(sequences.take(3, of: "a") == .copy)
        #expect(sequences.take(4, of: "a") == .next)
    }

    @Test("rooms without events are forgotten in the end, never one of the latest")
    func bound() {
        var sequences = Sequences(generation: 10)
        for number in 0..<10 { #expect(sequences.take(1, of: RoomID("\(number)")) == .next) }
        for number in 10..<20 { #expect(sequences.take(1, of: RoomID("\(number)")) == .next) }
        for number in 10..<20 { #expect(sequences.take(1, of: RoomID("\(number)")) == .copy) }
        #expect(sequences.take(1, of: "20") == .next)
        #expect(sequences.take(1, of: "0") == .next)
    }
}
