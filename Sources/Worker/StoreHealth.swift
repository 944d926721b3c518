/// Whether the store works, when it is tried again, and what is suspected where it works for others.
///
/// While it fails, deliveries are held: nothing is given back, since each time counts towards the broker's delivery
/// limit. A real transaction is tried after 1 s, doubling to 10 s. Only after a quarter of an hour without any
/// success are the channels closed, so that deliveries do not age towards the broker's time limit of half an hour.
struct StoreHealth {
    private(set) var isFailing = false
    /// The point of the monotonic clock from which the next try is due.
    private(set) var nextTryAt: Int64 = 0
    private var delay: Int64 = 0
    /// Since when nothing has succeeded, with deliveries in hand; nil for all is well.
    private var failingSince: Int64?
    private(set) var hasGivenBack = false
    /// What was in a batch that failed: commands and rooms of ticks at the front of the intake, to be tried alone.
    private(set) var suspectCommands = 0
    private(set) var suspectRooms = 0
    /// True where overdue rooms are brought up to date one at a time.
    var suspectsOverdue = false
    /// Failures laid to single rooms, with no success between them.
    private var blamed = 0

    private static let firstDelay: Int64 = 1_000
    private static let longestDelay: Int64 = 10_000
    private static let longestHold: Int64 = 900_000
    private static let mostBlamed = 4

    mutating func fail(at uptime: Int64) {
        isFailing = true
        blamed = 0
        if failingSince == nil { failingSince = uptime }
        delay = delay == 0 ? Self.firstDelay : min(delay * 2, Self.longestDelay)
        nextTryAt = uptime + delay
    }

    /// Whether what is held must go back to the broker now.
    func mustGiveBack(at uptime: Int64) -> Bool {
        guard isFailing, !hasGivenBack, let failingSince else { return false }
        return uptime - failingSince >= Self.longestHold
    }

    mutating func gaveBack() { hasGivenBack = true }

    /// The probe succeeded. The delay goes on growing until a batch succeeds as well.
    mutating func recover() {
        isFailing = false
        if hasGivenBack { failingSince = nil }
        hasGivenBack = false
    }

    /// A batch was committed.
    mutating func succeed() {
        delay = 0
        blamed = 0
        failingSince = nil
    }

    // MARK: Suspects

    /// Whether what waits is tried one at a time.
    var isWary: Bool { suspectCommands > 0 || suspectRooms > 0 }

    mutating func suspect(commands: Int, rooms: Int) {
        suspectCommands += commands
        suspectRooms += rooms
    }

    mutating func tried(commands: Int = 0, rooms: Int = 0) {
        suspectCommands = max(suspectCommands - commands, 0)
        suspectRooms = max(suspectRooms - rooms, 0)
    }

    /// Some of the suspects have gone back to the broker.
    mutating func keep(suspectCommands count: Int) { suspectCommands = count }
    mutating func forgetRooms() { suspectRooms = 0 }

    /// Whether a failure may be laid to the room that it met: where several in a row fail, it is the store.
    var mayBlame: Bool { blamed < Self.mostBlamed }

    mutating func blame() { blamed += 1 }
}
