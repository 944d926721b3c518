import AMQP
import Contract
import OvertimeClient
import RoomCore
import Service

extension ProgramCommand {
    static let dead = ProgramCommand(
        name: "dead", summary: "list, show, retry or drop the dead letters",
        usage: "list | show ID | retry ID… | retry --all | drop ID… | drop --all [OPTIONS]",
        details: """
            Dead letters are commands that could never be processed: no valid command, expired, delivered too often.

              list     one line a letter, the oldest first
              show     everything about one letter: properties, headers, body
              retry    publishes letters as commands again, and takes them out once the broker has them
              drop     takes letters out for good

            An ID is what list prints in its first column; it stays the same for as long as the letter is there. Equal letters
            are told apart as ID, ID-2, … in the order of the queue. A retried command keeps its idempotency key, so that
            retrying one that was applied after all changes nothing; its user_id (unless it is the connection's own),
            expiration, CC and BCC are not given back, and what was left out is said. What is not touched stays as it is
            and where it is.

            Exits with 0 where all was done, 1 where a letter was not found or the broker did not take it (it stays), 3 where
            the time was too short. One pass looks at 65,535 letters at most.
            """,
        options: [.all, .timeout, .json]
    ) { options throws(UsageError) in
        let work = try DeadWork(options)
        let deadline = MonotonicClock.milliseconds() + (try timeout(options))
        let composition = Composition.load(options)
        let box = DeadLetterBox(
            connection: composition.link("overtime dead"), topology: composition.topology)
        return work.run(on: box, until: deadline)
    }
}

/// What a command line asks for.
private struct DeadWork {
    private enum Action: String, CaseIterable {
        case list, show, retry, drop
    }

    private let action: Action
    private let ids: [LetterID]
    private let isForAll: Bool
    private let asJSON: Bool

    init(_ options: Options) throws(UsageError) {
        let known = Action.allCases.map(\.rawValue)
        guard let word = options.arguments.first else {
            throw UsageError("dead needs one of \(known.joined(separator: ", "))")
        }
        guard let action = Action(rawValue: word) else {
            throw UsageError("unknown dead \(word)\(Suggestion.text(for: word, among: known))")
        }
        self.action = action
        var ids: [LetterID] = []
        for word in options.arguments.dropFirst() where !ids.contains(LetterID(word)) {
            ids.append(LetterID(word))
        }
        self.ids = ids
        isForAll = options.has("all")
        asJSON = options.has("json")
        switch action {
        case .list:
            if let id = ids.first { throw UsageError("unexpected argument \(id)") }
        case .show:
            guard ids.count == 1, !isForAll else { throw UsageError("dead show needs one ID") }
        case .retry, .drop:
            guard isForAll != !ids.isEmpty else {
                throw UsageError("dead \(word) needs either IDs or --all")
            }
        }
    }

    func run(on box: DeadLetterBox, until deadline: Int64) -> ProcessExit {
        switch action {
        case .list: return list(box, until: deadline)
        case .show: return show(box, until: deadline)
        case .retry, .drop: return settle(box, until: deadline)
        }
    }

    private func list(_ box: DeadLetterBox, until deadline: Int64) -> ProcessExit {
        let now = Instant(milliseconds: SystemClock().nowMilliseconds())
        var lines: [String] = []
        let pass = box.pass(publishes: false, until: deadline, restarted: { lines = [] }) { id, letter in
            lines.append(
                asJSON
                    ? String(decoding: LetterEncoder.encode(letter, id: id), as: UTF8.self)
                    : LetterText.line(letter, id: id, now: now))
            return .keep
        }
        if !asJSON, !lines.isEmpty { Output.line(LetterText.header) }
        for line in lines { Output.line(line) }
        if !asJSON, pass.isWhole, lines.isEmpty { Output.line("there are no dead letters") }
        return end(pass, .ok)
    }

    private func show(_ box: DeadLetterBox, until deadline: Int64) -> ProcessExit {
        var found: Letter?
        let pass = box.pass(publishes: false, until: deadline) { id, letter in
            if id == ids.first { found = letter }
            return .keep
        }
        guard let found, let id = ids.first else {
            return end(pass, pass.failure == nil ? missing(ids, pass) : .refused)
        }
        let now = Instant(milliseconds: SystemClock().nowMilliseconds())
        if asJSON {
            Output.line(LetterEncoder.encodeWhole(found, id: id))
        } else {
            for line in LetterText.lines(found, id: id, now: now) { Output.line(line) }
        }
        return .ok
    }

    private func settle(_ box: DeadLetterBox, until deadline: Int64) -> ProcessExit {
        let wanted = Set(ids)
        let user = box.user
        var order: [LetterID] = []
        var leftOut: [LetterID: [String]] = [:]
        var titles: [LetterID: String] = [:]
        let pass = box.pass(publishes: action == .retry, until: deadline) { id, letter in
            guard isForAll || wanted.contains(id) else { return .keep }
            if titles.updateValue(LetterText.title(letter), forKey: id) == nil { order.append(id) }
            guard action == .retry else { return .drop }
            let command = RestoredCommand(letter, user: user)
            leftOut[id] = command.leftOut
            return .retry(command)
        }
        var exit = ProcessExit.ok
        for id in order {
            guard let outcome = pass.outcomes[id] else { continue }
            if outcome != .retried, outcome != .dropped { exit = .refused }
            if asJSON {
                Output.line(LetterEncoder.encode(id, outcome: outcome.rawValue, leftOut: leftOut[id] ?? []))
            } else {
                Output.line(
                    LetterText.outcome(outcome, id: id, title: titles[id] ?? "", leftOut: leftOut[id] ?? []))
            }
        }
        if order.isEmpty, isForAll, pass.isWhole, !asJSON { Output.line("there are no dead letters") }
        if !pass.isSettled, !pass.outcomes.isEmpty {
            Output.error("not all of this is certain: look again with overtime dead list")
        }
        let lost = ids.filter { pass.outcomes[$0] == nil }
        if pass.failure == nil, !lost.isEmpty { exit = missing(lost, pass) }
        // All that were named were found: what others hold does not matter.
        if !isForAll, lost.isEmpty, pass.failure == nil { return exit }
        return end(pass, exit)
    }

    /// Where another reads the queue, a letter that did not come may be there all the same.
    private func missing(_ ids: [LetterID], _ pass: DeadLetterBox.Pass) -> ProcessExit {
        guard pass.otherReaders == 0 else { return .ok }
        for id in ids {
            let name = PrintableText.quoted(id.text)
            if asJSON {
                Output.line(LetterEncoder.encode(id, outcome: "not_found", leftOut: []))
            } else {
                Output.error("there is no dead letter \(name)")
            }
        }
        return .refused
    }

    /// Says what kept a pass from seeing everything.
    private func end(_ pass: DeadLetterBox.Pass, _ exit: ProcessExit) -> ProcessExit {
        if let failure = pass.failure {
            if case .noReply = failure {
                Output.error(
                    "the time was up after \(pass.seen) of \(pass.expected) letters: give a longer --timeout")
                return .noReply
            }
            return ProgramCommand.report(failure)
        }
        guard !pass.isWhole else { return exit }
        if pass.otherReaders > 0 {
            Output.error(
                "\(pass.otherReaders) other reader(s) of the dead letters may hold some: what is said here is of the "
                    + "\(pass.seen) that came; end the other reader and look again")
            return exit == .ok ? .noReply : exit
        }
        Output.error(
            "of \(pass.expected) letters \(pass.seen) came: others are held by another reader, or are too many for one pass"
        )
        return exit == .ok ? .noReply : exit
    }
}
