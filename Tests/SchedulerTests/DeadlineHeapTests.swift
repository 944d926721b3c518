import Testing

@testable import Scheduler

@Suite("The heap of deadlines")
struct DeadlineHeapTests {
    @Test("Gives back what a sorted array would", arguments: 0..<50)
    func againstASortedArray(seed: Int) {
        var generator = Numbers(state: UInt64(seed) &* 99_991 &+ 1)
        var heap = DeadlineHeap<Int>()
        var sorted: [(at: Int64, element: Int)] = []
        for step in 0..<500 {
            if generator.next(3) < 2 {
                let at = Int64(generator.next(40))
                heap.add(step, at: at)
                sorted.append((at, step))
            } else {
                let now = Int64(generator.next(40))
                let earliest = sorted.map(\.at).min()
                let taken = heap.takeDue(at: now)
                guard let earliest, earliest <= now else {
                    #expect(taken == nil)
                    continue
                }
                let index = sorted.firstIndex { $0.element == taken }
                #expect(index.map { sorted[$0].at } == earliest)
                if let index { sorted.remove(at: index) }
            }
            #expect(heap.count == sorted.count)
            #expect(heap.earliest == sorted.map(\.at).min())
        }
    }

    @Test("Drops what does not count and stays a heap", arguments: 0..<20)
    func keeping(count: Int) {
        var heap = DeadlineHeap<Int>()
        for number in 0..<count { heap.add(number, at: Int64(number * 7 % 11)) }
        heap.keep { $0 % 3 != 0 }
        var at: [Int] = []
        while let next = heap.takeDue(at: .max) { at.append(next * 7 % 11) }
        #expect(at == (0..<count).filter { $0 % 3 != 0 }.map { $0 * 7 % 11 }.sorted())
    }

    @Test("Empty, one, and what is not due yet")
    func edges() {
        var heap = DeadlineHeap<String>()
        let nothing = heap.takeDue(at: .max)
        #expect(nothing == nil)
        heap.add("a", at: 5)
        let early = heap.takeDue(at: 4)
        #expect(early == nil)
        let due = heap.takeDue(at: 5)
        #expect(due == "a")
        #expect(heap.earliest == nil)
    }

    struct Numbers {
        var state: UInt64
        mutating func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(bound))
        }
    }
}
