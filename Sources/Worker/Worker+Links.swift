import AMQP
import Contract
import Metrics
import RoomCore
import Service

/// What the connections tell.
extension Worker {
    func handleConsumer(_ event: LinkEvent, at uptime: Int64) {
        switch event {
        case .channelOpened(let channel, _):
            links.consuming.insert(channel)
            links.isWell(consumerName(channel))
            log.info("consuming", ["queue": consumerName(channel)])
        case .channelClosed(let channel, _, let error, _):
            links.consuming.remove(channel)
            ConsumerChannel.shard(of: channel).map { shards.closed($0) }
            dropUndecided(of: channel)
            guard let error else { return log.info("consumer closed", ["queue": consumerName(channel)]) }
            guard links.isNews(error, of: consumerName(channel)) else { return }
            log.warning("consumer closed", ["queue": consumerName(channel), "error": error.description])
        case .delivery(let channel, let delivery):
            receive(delivery, on: channel, at: uptime)
        default:
            note(event, of: &meters.consumer)
            logConnection(event, "consumer")
        }
    }

    private func note(_ event: LinkEvent, of connection: inout ConnectionMeter) {
        switch event {
        case .connected: connection.connected()
        case .disconnected: connection.disconnected()
        default: break
        }
    }

    func handlePublisher(_ event: LinkEvent, at uptime: Int64) {
        switch event {
        case .channelOpened(let channel, _) where PublisherChannel.declaring.contains(channel):
            topologyDeclared(on: channel)
        case .channelClosed(let channel, _, let error, _) where PublisherChannel.declaring.contains(channel):
            topologyNotDeclared(on: channel, error)
        case .channelOpened(let channel, let generation):
            links.publisher[channel] = generation
            links.isWell(publisherName(channel))
            log.info("publishing", ["channel": publisherName(channel)])
            // The exchange may have been deleted and made again: the log must be bound to the new one.
            if channel == PublisherChannel.events { topologyAt = uptime }
        case .channelClosed(let channel, _, let error, let unknown):
            links.publisher[channel] = nil
            meters.note(unknown.count, .unknown, on: channel)
            if let error, links.isNews(error, of: publisherName(channel)) {
                log.warning(
                    "publishing channel closed",
                    ["channel": publisherName(channel), "error": error.description])
            }
            let loss = ReplyPublisher.Loss(error)
            switch channel {
            case PublisherChannel.events: outbox.channelLost(loss, at: uptime)
            case PublisherChannel.replies:
                drop(
                    replies.channelLost(loss, at: uptime),
                    why: "the reply closed its channel")
            case PublisherChannel.letters: _ = letters.channelLost(loss, at: uptime)
            default: break
            }
        case .confirmed(let channel, let ids):
            meters.note(ids.count, .confirmed, on: channel)
            switch channel {
            case PublisherChannel.events: outbox.confirmed(ids)
            case PublisherChannel.replies: jobs.settle(replies.confirmed(ids))
            default:
                jobs.settle(letters.confirmed(ids))
                if letters.isEmpty, links.letterComplaint != nil {
                    links.letterComplaint = nil
                    log.info("dead letters are taken again")
                }
            }
        case .refused(let channel, let ids):
            meters.note(ids.count, .refused, on: channel)
            switch channel {
            case PublisherChannel.events: outbox.refused(ids, at: uptime)
            case PublisherChannel.replies:
                drop(replies.refused(ids, at: uptime), why: "the broker refused the reply")
            default:
                complain(.refused)
                _ = letters.refused(ids, at: uptime)
            }
        case .returned(let channel, let id, _, _):
            meters.note(1, .returned, on: channel)
            guard channel == PublisherChannel.letters else {
                if channel == PublisherChannel.replies { jobs.settle(replies.confirmed([id])) }
                return
            }
            complain(.returned)
            _ = letters.refused([id], at: uptime)
        case .blocked:
            links.isBlocked = true
            logConnection(event, "publisher")
        case .unblocked:
            links.isBlocked = false
            outbox.restartClocks(at: uptime)
            replies.restartClocks(at: uptime)
            letters.restartClocks(at: uptime)
            logConnection(event, "publisher")
        case .connected, .disconnected:
            note(event, of: &meters.publisher)
            // A block ends with its connection, and nobody says so.
            links.isBlocked = false
            logConnection(event, "publisher")
        default:
            logConnection(event, "publisher")
        }
    }

    private func logConnection(_ event: LinkEvent, _ name: String) {
        switch event {
        case .connected(let version, _, let node):
            links.isWell(name)
            log.info("connected", ["connection": name, "broker": version, "node": node])
        case .disconnected(let error, let delay):
            guard links.isNews(error, of: name) else { return }
            log.warning(
                "disconnected", ["connection": name, "error": error.description, "retryInMs": delay])
        case .blocked(let reason):
            log.warning(
                "blocked by the broker: nothing is published for now", ["connection": name, "reason": reason])
        case .unblocked:
            log.info("unblocked", ["connection": name])
        default: break
        }
    }

    /// Said once, not with each try: until every letter has been taken nothing has changed.
    private func complain(_ complaint: LinkStates.LetterComplaint) {
        guard links.letterComplaint != complaint else { return }
        links.letterComplaint = complaint
        let fields: LogFields = ["exchange": settings.topology.dead.description]
        switch complaint {
        case .refused:
            log.error("dead letter refused by the broker: it is tried again until it is taken", fields)
        case .returned:
            log.error("no queue takes dead letters: bind one to the exchange", fields)
        }
    }

    private func drop(_ dropped: [UInt64], why: String) {
        guard !dropped.isEmpty else { return }
        counters.droppedReplies += Int64(dropped.count)
        log.warning("reply dropped", ["reason": why, "count": dropped.count])
        jobs.settle(dropped)
    }

    /// What has been delivered on a closed channel will be delivered again, so nothing undecided may be decided.
    func dropUndecided(of channel: Int) {
        if channel == ConsumerChannel.ticks {
            intake.dropTicks().forEach { jobs.abandon($0) }
            health.forgetRooms()
        } else if ConsumerChannel.shard(of: channel) != nil {
            let left = intake.dropCommands(of: channel, amongFirst: health.suspectCommands)
            health.keep(suspectCommands: left)
            aside.dropCommands(of: channel)
        }
    }

    // MARK: Deliveries

    private func receive(_ delivery: Delivery, on channel: Int, at uptime: Int64) {
        switch channel {
        case ConsumerChannel.ticks: receiveTick(delivery)
        case ConsumerChannel.queries: receiveQuery(delivery, at: uptime)
        default:
            guard let shard = ConsumerChannel.shard(of: channel), shards.isConsumed(shard) else { return }
            intake.add(command: delivery, on: channel, at: uptime)
        }
    }

    private func receiveTick(_ delivery: Delivery) {
        let job = jobs.begin(delivery.tag, on: ConsumerChannel.ticks)
        // A redelivered tick is acknowledged unread: the scheduler fires again.
        guard !delivery.redelivered, case .bytes(let body) = delivery.body, let tick = Tick.decode(body),
            !tick.rooms.isEmpty
        else { return jobs.finishIfSettled(job) }
        intake.add(
            tick: Intake.WaitingTick(
                job: job, rooms: tick.rooms[...], reply: replyAddress(of: delivery.properties)))
    }

    /// Where an answer goes; nil where none is wanted, or where it must not go.
    func replyAddress(of properties: Properties) -> ReplyAddress? {
        guard let queue = properties.replyTo,
            ReplyTarget.check(replyTo: queue, prefix: settings.topology.prefix) == .allowed
        else { return nil }
        return ReplyAddress(
            exchange: settings.topology.repliesExchange, queue: queue, correlationID: properties.correlationID
        )
    }

    func consumerName(_ channel: Int) -> String {
        switch channel {
        case ConsumerChannel.ticks: settings.topology.ticks.description
        case ConsumerChannel.queries: settings.topology.queries.description
        default:
            ConsumerChannel.shard(of: channel).flatMap { shard in
                let queues = settings.topology.commandQueues
                return queues.indices.contains(shard) ? queues[shard].description : nil
            } ?? "?"
        }
    }

    func publisherName(_ channel: Int) -> String {
        switch channel {
        case PublisherChannel.events: "events"
        case PublisherChannel.replies: "replies"
        default: "dead letters"
        }
    }
}
