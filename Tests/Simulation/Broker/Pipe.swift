/// One direction of a connection: in order, each frame after some time, and at a cut only a beginning of what is under
/// way arrives.
final class Pipe<Frame> {
    private let world: World
    private let receive: (Frame) -> Void
    private var frames: [Frame] = []
    /// How many of them have arrived and wait only because nobody takes them.
    private var arrived = 0
    private var lastArrival: Int64 = 0
    /// Nobody takes what arrives: the reader is frozen, or does not want to.
    private(set) var isHeld = false

    init(world: World, receive: @escaping (Frame) -> Void) {
        self.world = world
        self.receive = receive
    }

    func send(_ frame: Frame, delay: Int64) {
        frames.append(frame)
        lastArrival = max(lastArrival, world.now + delay)
        world.timeline.at(lastArrival) { [weak self] in
            guard let self, arrived < frames.count else { return }
            arrived += 1
            drain()
        }
    }

    func hold() { isHeld = true }

    func release() {
        isHeld = false
        drain()
    }

    /// Holds what arrives from this frame on, which was just taken.
    func holdBack(_ frame: Frame) {
        frames.insert(frame, at: 0)
        arrived += 1
        isHeld = true
    }

    private func drain() {
        while !isHeld, arrived > 0, !frames.isEmpty {
            arrived -= 1
            receive(frames.removeFirst())
        }
    }

    /// Ends it: what still gets through. A held one lets nothing through.
    func cut() -> [Frame] {
        defer {
            frames = []
            arrived = 0
        }
        guard !frames.isEmpty, !isHeld else { return [] }
        return Array(frames.prefix(world.dice.int(0...frames.count)))
    }
}
