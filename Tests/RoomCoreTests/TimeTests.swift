import RoomCore
import Testing

@Suite("Instants and spans saturate")
struct TimeTests {
    @Test("An instant outside the printable years is clamped to them")
    func clamped() {
        #expect(Instant(milliseconds: .max) == .latest)
        #expect(Instant(milliseconds: .min) == .earliest)
        #expect(Instant(milliseconds: Instant.latest.milliseconds + 1) == .latest)
        #expect(Instant(milliseconds: Instant.earliest.milliseconds - 1) == .earliest)
        #expect(Instant.latest.milliseconds == 253_402_300_799_999)
        #expect(Instant.earliest.milliseconds == -62_135_596_800_000)
    }

    @Test(
        "Sums and differences stop at the bounds and never trap",
        arguments: [Instant.earliest, Instant(milliseconds: 0), .at(0), .latest])
    func saturates(_ instant: Instant) {
        #expect(instant + .ms(.max) == .latest)
        #expect(instant - .ms(.min) == .latest)
        #expect(instant + .ms(.min) == .earliest)
        #expect(instant - .ms(.max) == .earliest)
        #expect(instant + .zero == instant)
        #expect(instant - .zero == instant)
    }

    @Test("Just inside the bounds arithmetic is exact")
    func exactInside() {
        let step = TimeSpan.ms(1)
        #expect(Instant.latest - step + step == .latest)
        #expect((Instant.latest - step).milliseconds == Instant.latest.milliseconds - 1)
        #expect(Instant.earliest + step - step == .earliest)
        #expect(Instant.latest + step == .latest)
        #expect(Instant.earliest - step == .earliest)
        #expect(Instant.latest - Instant.earliest == .ms(315_537_897_599_999))
        #expect(Instant.earliest - Instant.latest == .ms(-315_537_897_599_999))
    }

    @Test("Spans saturate when subtracted")
    func spans() {
        #expect(TimeSpan.ms(.max) - .ms(-1) == .ms(.max))
        #expect(TimeSpan.ms(.min) - .ms(1) == .ms(.min))
        #expect(TimeSpan.ms(-2) - .ms(.max) == .ms(.min))
        #expect(TimeSpan.ms(0) - .ms(.min) == .ms(.max))
        #expect(TimeSpan.minutes(2) - .seconds(30) == .ms(90_000))
        #expect(TimeSpan.longest == .ms(31_622_400_000))
    }

    @Test("Instants and spans are ordered by their milliseconds")
    func ordered() {
        #expect(Instant.at(0) < .at(0, 1))
        #expect(!(Instant.at(0) < .at(0)))
        #expect(TimeSpan.ms(-1) < .zero)
    }

    @Test("A clock that reads nonsense stops no room", arguments: [Int64.min, -1, 0, .max])
    func nonsense(_ milliseconds: Int64) {
        let now = Instant(milliseconds: milliseconds)
        var scene = Scene()
        scene.open(minutes: 366 * 24 * 60, PolicyRequest(reopen: .join), at: now)
        scene.join("ann", .moderator, at: now)
        for action in [Command.Action.extend(by: .longest), .status, .leave, .destroy] {
            scene.perform(action, by: .user("ann"), at: now)
            scene.tick(at: .latest)
            scene.join("ann", .moderator, at: .earliest)
        }
        #expect(scene.events.map { $0.sequence } == (1...Int64(scene.events.count)).map { $0 })
    }
}
