import AMQP
import Contract
import RoomCore
import Store

/// I1: each confirmed command has its end. I2: a key has one effect and one answer.
struct CommandCheck {
    private struct Letter {
        let reason: String?
        let body: [UInt8]
    }

    private let history: History
    private let publishes: [Publish]
    private var answers: [CommandKey: AnswerWrite] = [:]
    private var replies: [String: [[UInt8]]] = [:]
    private var letters: [String: [Letter]] = [:]
    private var found: [String] = []

    init(world: World, broker: Broker, clients: Clients) {
        history = world.history
        publishes = clients.publishes
        for commit in history.commits {
            for answer in commit.batch.answers {
                if answers.updateValue(answer, forKey: answer.key) != nil {
                    found.append("I2: \(answer.key.room) \(answer.key.id) was decided twice")
                }
            }
        }
        for message in broker.queue(Clients.replies)?.ready ?? [] {
            guard let name = message.message.correlation else { continue }
            replies[name, default: []].append(message.message.body)
        }
        for message in history.letters {
            guard let name = message.correlation else { continue }
            letters[name, default: []].append(
                Letter(
                    reason: message.properties.headers?["x-overtime-reason"]?.text, body: message.body))
        }
    }

    func violations() -> [String] {
        var found = found
        for publish in publishes {
            if let problem = publish.intent.command == nil ? invalid(publish) : valid(publish) {
                found.append("\(problem): \(publish.correlation)")
            }
            for reply in replies[publish.correlation] ?? [] {
                if let problem = wrong(reply, to: publish) {
                    found.append(
                        "\(problem): \(publish.correlation) \(String(decoding: reply, as: UTF8.self))")
                }
            }
        }
        return found
    }

    private func isAnswered(_ publish: Publish) -> Bool {
        !publish.wantsReply || history.refusedReplies.contains(publish.correlation)
            || replies[publish.correlation] != nil
    }

    private func isOwed(_ publish: Publish) -> Bool { publish.outcome == .confirmed && !publish.isLost }

    private func invalid(_ publish: Publish) -> String? {
        let intent = publish.intent
        for letter in letters[publish.correlation] ?? [] {
            guard intent.isOversized || letter.reason != nil || intent.properties.expiration != nil else {
                return "I1: an invalid command's letter gives no reason"
            }
            guard letter.body == intent.body else { return "I1: a letter's body was changed" }
        }
        guard isOwed(publish) else { return nil }
        guard letters[publish.correlation] != nil else { return "I1: no dead letter" }
        if intent.hasForbiddenReply {
            return replies[publish.correlation] == nil ? nil : "I1: answered where it must not be"
        }
        // The worker does not wait for the answer to a body that it could not hold.
        return intent.isOversized || isAnswered(publish) ? nil : "I1: an invalid command is not answered"
    }

    private func valid(_ publish: Publish) -> String? {
        for letter in letters[publish.correlation] ?? [] {
            switch letter.reason {
            case nil where publish.intent.properties.expiration != nil: break
            case "crashed_worker" where history.workerCrashes >= 3: break
            default: return "I1: a valid command is a dead letter, \(letter.reason ?? "by the broker")"
            }
        }
        guard isOwed(publish), letters[publish.correlation] == nil else { return nil }
        guard isAnswered(publish) else { return "I1: a command is not answered" }
        guard let key = publish.intent.key, publish.intent.command?.action != .status else { return nil }
        return answers[key] == nil ? "I1: a command has vanished" : nil
    }

    private func wrong(_ body: [UInt8], to publish: Publish) -> String? {
        guard let reply = ReplyDecoder.decode(body) else { return "I2: an answer that is none" }
        guard let command = publish.intent.command else {
            return reply.error?.code == 6008 ? nil : "I1: an invalid command was accepted"
        }
        guard reply.room == command.room else { return "I2: an answer about another room" }
        guard let key = publish.intent.key, let answer = answers[key] else {
            return command.id == nil || command.action == .status ? nil : "I2: answered but not decided"
        }
        guard answer.canonical == CommandText.canonical(command) else {
            // A status is not kept, so its key may be free when it is asked.
            return reply.error?.code == 6009 || command.action == .status
                ? nil : "I2: a reused key was accepted"
        }
        return body == answer.reply ? nil : "I2: a repeat got another answer"
    }
}
