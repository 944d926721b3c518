import AMQP
import Contract
import RoomCore

/// Draws commands of all kinds for a handful of rooms, and bodies that are none.
struct IntentMaker {
    let scenario: Scenario
    private var nextID = 1

    init(scenario: Scenario) { self.scenario = scenario }

    mutating func next(dice: inout Dice) -> Intent {
        let room = dice.one(of: scenario.rooms)
        let user = dice.one(of: scenario.users)
        switch dice.int(0...99) {
        case 0..<12: return command(room, nil, .open(request(&dice)), &dice)
        case 12..<42:
            return command(
                room, user, .join(role: dice.one(of: [nil, .moderator, .participant, .viewer])), &dice)
        case 42..<50: return command(room, user, .leave, &dice)
        case 50..<86:
            let by = dice.one(of: [nil, TimeSpan.seconds(dice.span(1...60))])
            return command(room, dice.chance(0.8) ? user : nil, .extend(by: by), &dice)
        case 86..<93: return command(room, dice.chance(0.8) ? user : nil, .destroy, &dice)
        default: return command(room, nil, .status, &dice)
        }
    }

    /// The commands that get a room going.
    mutating func opening(of room: RoomID, dice: inout Dice) -> [Intent] {
        [
            command(room, nil, .open(request(&dice)), &dice),
            command(room, scenario.users[0], .join(role: .moderator), &dice),
            command(room, scenario.users[1], .join(role: nil), &dice),
        ]
    }

    mutating func poison(dice: inout Dice) -> Intent {
        command(Scenario.poison, scenario.users[0], .join(role: nil), &dice)
    }

    /// Another command under the same key.
    mutating func reusing(_ intent: Intent, dice: inout Dice) -> Intent? {
        guard let id = intent.command?.id else { return nil }
        let other = next(dice: &dice)
        guard let command = other.command else { return nil }
        return make(
            Command(room: intent.room, user: command.user, id: id, action: command.action),
            inProperty: false, &dice)
    }

    private mutating func command(
        _ room: RoomID, _ user: UserID?, _ action: Command.Action, _ dice: inout Dice
    ) -> Intent {
        let hasID = scenario.isReplayable || dice.chance(0.75)
        let id = hasID ? CommandID("c\(nextID)") : nil
        nextID += 1
        return make(
            Command(room: room, user: user, id: id, action: action), inProperty: dice.chance(0.3), &dice)
    }

    /// - Parameter inProperty: the key stands in `message_id` and not in the body.
    private func make(_ command: Command, inProperty: Bool, _ dice: inout Dice) -> Intent {
        var written = command
        var properties = Properties(contentType: "application/json", deliveryMode: 2)
        if inProperty, let id = command.id {
            written = Command(room: command.room, user: command.user, action: command.action)
            properties.messageID = ShortString(id.text)
        }
        var actor = command.user.map(Actor.user) ?? .nobody
        if dice.chance(0.7) {
            properties.userID = ShortString(Scenario.operatorName)
            if case .nobody = actor { actor = .operator(Scenario.operatorName) }
        }
        return Intent(
            room: command.room, body: CommandEncoder.encode(written), properties: properties,
            command: command, actor: actor)
    }

    /// Definitions with short sessions and close windows. Windows are multiples of 3 s: others are rounded in the events,
    /// and the checker reads only those.
    private func request(_ dice: inout Dice) -> OpenRequest {
        let windows = dice.one(of: [[21, 9], [12], [30, 15, 6], [9, 3], [3]] as [[Int64]])
        var policy = PolicyRequest()
        policy.windows = windows.map { .seconds($0) }
        let shortest = windows[0] + dice.span(dice.chance(0.05) ? -2...0 : 0...8)
        policy.extension = ExtensionRequest(
            min: .seconds(shortest), max: .seconds(shortest + dice.span(0...20)), default: nil)
        policy.extenders = dice.one(of: [nil, nil, .anyone, .moderators])
        policy.maxExtensions = dice.one(of: [nil, nil, 0, 1, 3])
        policy.clock = dice.one(of: [nil, nil, .firstJoin, .firstModerator, .open])
        policy.reopen = dice.one(of: [nil, .command, .join, .join])
        let duration = TimeSpan.seconds(dice.span(10...70))
        if dice.chance(0.2) {
            policy.maxTotal = TimeSpan(milliseconds: duration.milliseconds + dice.span(0...90_000))
        }
        return OpenRequest(
            duration: dice.chance(0.9) ? duration : nil,
            moderators: dice.chance(0.2) ? [scenario.users[0], scenario.users[2]] : nil, policy: policy)
    }

    // MARK: What is no command

    mutating func invalid(dice: inout Dice) -> Intent {
        let room = dice.one(of: scenario.rooms)
        var properties = Properties(deliveryMode: 2)
        var text = "{\"command\":\"join\",\"room\":\"\(room.text)\",\"user\":\"ann\"}"
        var isForbidden = false
        switch dice.int(0...9) {
        case 0: text = "join, please"
        case 1: text = "[\"join\"]"
        case 2: text = "{\"command\":\"join\",\"room\":\"\(room.text)\",\"user\":\"ann\",\"minuets\":1}"
        case 3:
            text = "{\"command\":\"join\",\"command\":\"leave\",\"room\":\"\(room.text)\",\"user\":\"ann\"}"
        case 4: text = "{\"command\":\"extend\",\"room\":\"\(room.text)\",\"user\":\"ann\",\"minutes\":\"x\"}"
        case 5: text = "{\"command\":\"join\",\"room\":\"\(room.text)\"}"
        case 6: text = "{\"command\":\"join\",\"room\":\"a\\u0000b\",\"user\":\"ann\"}"
        case 7: properties.contentType = "text/plain"
        case 8: properties.contentEncoding = "gzip"
        default: isForbidden = true
        }
        return Intent(
            room: room, body: Array(text.utf8), properties: properties, command: nil, actor: .nobody,
            hasForbiddenReply: isForbidden)
    }

    func oversized(dice: inout Dice) -> Intent {
        Intent(
            room: dice.one(of: scenario.rooms), body: Array("large".utf8),
            properties: Properties(deliveryMode: 2), command: nil, actor: .nobody, isOversized: true)
    }
}
