import MemoryStore
import RoomCore
import Store

/// What can go wrong with a store: it fails, it is slow, it does not say what it did, or its process dies inside.
final class StoreFaults: MemoryStore.Gate {
    private let world: World
    private unowned let process: Process

    init(world: World, process: Process) {
        self.world = world
        self.process = process
    }

    func before(_ call: MemoryStore.Call, on rooms: [RoomID]) throws(StoreError) {
        guard !process.isDead else { throw .closed }
        if rooms.contains(Scenario.poison) {
            world.history.inject(.poisonCommand)
            throw died()
        }
        if let error = world.storeOutage { throw error }
        if world.strikes(.crashInsideStore, usual: 0.002) {
            world.history.inject(.crashInsideStore, "before \(call)")
            throw died()
        }
        if world.strikes(.storeError, usual: 0.004) {
            let error = world.randomStoreError()
            world.history.inject(.storeError, "\(call): \(error)")
            throw error
        }
        if world.strikes(.slowStore, usual: 0.01) {
            let delay = world.dice.skewed(5...3_000)
            world.history.inject(.slowStore, "\(call): \(delay) ms")
            process.clock.lag += delay
        }
    }

    func after(_ call: MemoryStore.Call) throws(StoreError) {
        guard call.isWrite else { return }
        if world.strikes(.crashInsideStore, usual: 0.002) {
            world.history.inject(.crashInsideStore, "after \(call)")
            throw died()
        }
        if world.strikes(.unknownCommit, usual: 0.005) {
            world.history.inject(.unknownCommit, "\(call)")
            throw .io(code: 10, "simulated")
        }
    }

    private func died() -> StoreError {
        process.die()
        return .closed
    }
}

extension World {
    /// One of the failures that heal by themselves.
    func randomStoreError() -> StoreError {
        dice.one(of: [
            .busy(path: "simulated"), .full(path: "simulated"), .io(code: 10, "simulated"),
            .readOnly(path: "simulated"),
        ])
    }
}
