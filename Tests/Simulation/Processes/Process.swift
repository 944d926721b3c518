/// One operating-system process: it takes turns when something has arrived or its wait is over, may stand still, and
/// may die in the middle of a turn. What it asked for after its death has never happened.
class Process {
    let name: String
    let world: World
    let clock: ProcessClock
    var links: [SimulatedLink] = []
    /// Told once that it is gone, and whether it ended by itself.
    var onEnd: (_ isClean: Bool) -> Void = { _ in }
    private(set) var isDead = false
    private(set) var isFrozen = false
    private var isInTurn = false
    private var isBuried = false
    private var wakesAt: Int64?
    private var busyUntil: Int64 = 0
    private var freezes = 0
    /// Lets it go on; nil while it is not frozen.
    private(set) var thaw: (() -> Void)?

    init(name: String, world: World, clock: ProcessClock) {
        self.name = name
        self.world = world
        self.clock = clock
    }

    /// Does what there is to do; returns the milliseconds that it wants to wait, nil where it has ended by itself.
    func turn() -> Int64? { nil }

    func wake(after delay: Int64) {
        let at = max(world.now + delay, busyUntil)
        if let wakesAt, wakesAt <= at { return }
        wakesAt = at
        world.timeline.at(at) { [weak self] in self?.takeTurn() }
    }

    private func takeTurn() {
        guard let at = wakesAt, at <= world.now else { return }
        wakesAt = nil
        guard !isDead, !isFrozen else { return }
        isInTurn = true
        let wait = turn()
        isInTurn = false
        busyUntil = world.now + clock.lag
        clock.lag = 0
        if isDead { return bury() }
        guard let wait else {
            isDead = true
            isBuried = true
            for link in links { link.stop() }
            return onEnd(true)
        }
        // A turn takes time, so that one who always has more to do does not stop the universe.
        wake(after: max(wait, 1))
    }

    // MARK: Faults

    /// A crash, at once and wherever it stands.
    func die() {
        guard !isDead else { return }
        isDead = true
        world.history.note("\(name) dies")
        if !isInTurn { bury() }
    }

    private func bury() {
        guard !isBuried else { return }
        isBuried = true
        // The broker mostly learns of a dead process at once, and of a dead machine by its silence.
        let delay = world.strikes(.halfOpen, usual: 0.2) ? world.dice.span(1_000...20_000) : 0
        if delay > 0 { world.history.inject(.halfOpen, "\(name) \(delay) ms") }
        for link in links { link.die(noticedAfter: delay) }
        onEnd(false)
    }

    /// Between two things that it sends.
    func mayDieSending() {
        guard !isDead, world.strikes(.crashAtSending, usual: 0.001) else { return }
        world.history.inject(.crashAtSending, name)
        die()
    }

    /// Stands still for a while, as after SIGSTOP, or with its machine.
    func freeze(for duration: Int64, withMachine: Bool) {
        guard !isDead, !isFrozen else { return }
        isFrozen = true
        for link in links { link.freeze(true) }
        if duration > 20_000 {
            world.timeline.after(20_000) { [weak self] in
                guard let self, isFrozen, !isDead else { return }
                for link in links { link.cut(noticedAfter: 0) }
            }
        }
        let since = world.now
        thaw = { [unowned self] in
            thaw = nil
            isFrozen = false
            guard !isDead else { return }
            if withMachine { clock.missed += world.now - since }
            world.history.note("\(name) goes on")
            for link in links { link.freeze(false) }
            wake(after: 0)
        }
        freezes += 1
        let number = freezes
        world.timeline.after(duration) { [weak self] in
            guard let self, freezes == number else { return }
            thaw?()
        }
    }
}
