import AMQP
import RoomCore
import Testing

@testable import Worker

@Suite("Who is served first")
struct IntakeTests {
    private func rooms(_ count: Int) -> ArraySlice<RoomID> { (0..<count).map { RoomID("r\($0)") }[...] }

    private func command(_ number: UInt64) -> Delivery {
        Delivery(
            consumerTag: "c", tag: DeliveryTag(generation: 1, number: number), redelivered: false,
            exchange: "", routingKey: "", properties: Properties(), body: .bytes([]))
    }

    @Test(
        "Ticks get at most half of a batch while commands wait, counted in rooms",
        arguments: [
            (ticks: [10, 10], commands: 0, batch: 64, taken: [10, 10]),
            (ticks: [500], commands: 0, batch: 512, taken: [500]),
            (ticks: [500], commands: 1, batch: 512, taken: [256]),
            (ticks: [100, 100, 100], commands: 9, batch: 512, taken: [100, 100, 56]),
            (ticks: [500, 500], commands: 0, batch: 512, taken: [500, 12]),
            (ticks: [3], commands: 1, batch: 1, taken: [1]),
            (ticks: [], commands: 5, batch: 512, taken: []),
        ])
    func share(_ ticks: [Int], _ commands: Int, _ batch: Int, _ taken: [Int]) {
        var intake = Intake()
        for (index, count) in ticks.enumerated() {
            intake.add(tick: Intake.WaitingTick(job: UInt64(index + 1), rooms: rooms(count), reply: nil))
        }
        for number in 0..<commands { intake.add(command: command(UInt64(number)), at: 0) }
        let sizes = intake.takeTicks(batchSize: batch).map(\.tick.rooms.count)
        #expect(sizes == taken)
    }

    @Test("A tick of 500 rooms takes as many batches as it needs and is finished by its last part")
    func splitTick() {
        var intake = Intake()
        intake.add(tick: Intake.WaitingTick(job: 7, rooms: rooms(500), reply: nil))
        intake.add(command: command(1), at: 0)
        var seen: [RoomID] = []
        var last: [Bool] = []
        for _ in 0..<4 {
            for part in intake.takeTicks(batchSize: 256) {
                #expect(part.tick.job == 7)
                seen += part.tick.rooms
                last.append(part.isLast)
            }
        }
        #expect(seen == Array(rooms(500)))
        #expect(last == [false, false, false, true])
    }

    @Test("Commands come out as they came in, also through a long backlog")
    func commandsInOrder() {
        var intake = Intake()
        for number in 0..<5_000 { intake.add(command: command(UInt64(number)), at: 0) }
        var numbers: [UInt64] = []
        while let next = intake.takeCommand() { numbers.append(next.delivery.tag.number) }
        #expect(numbers == Array(0..<5_000))
        #expect(intake.isEmpty)
    }

    @Test("What is dropped is gone, and the jobs of dropped ticks are named")
    func dropped() {
        var intake = Intake()
        intake.add(command: command(1), at: 0)
        intake.add(tick: Intake.WaitingTick(job: 3, rooms: rooms(9), reply: nil))
        intake.add(tick: Intake.WaitingTick(job: 4, rooms: rooms(1), reply: nil))
        _ = intake.takeTicks(batchSize: 4)
        _ = intake.dropCommands(of: ConsumerChannel.commands, amongFirst: 0)
        #expect(intake.commandCount == 0)
        let jobs = intake.dropTicks()
        #expect(jobs == [3, 4])
        #expect(intake.isEmpty)
    }
}
