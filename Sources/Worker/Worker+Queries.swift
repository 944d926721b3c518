import AMQP
import Contract
import RoomCore
import Service
import Store

/// Read-only questions, answered from the store by whichever worker takes them.
extension Worker {
    func receiveQuery(_ delivery: Delivery, at uptime: Int64) {
        let job = jobs.begin(delivery.tag, on: ConsumerChannel.queries)
        let query: Result<Query, QueryProblem> =
            switch delivery.body {
            case .bytes(let body): QueryDecoder.decode(body)
            case .discarded(let size):
                .failure(
                    QueryProblem(
                        detail: "the body has \(size) bytes; a query has at most \(StrictJSON.maximumBytes)"))
            }
        if let address = replyAddress(of: delivery.properties), let answer = answer(query, at: uptime) {
            reply(answer, to: address, job: 0, at: uptime)
        }
        jobs.finishIfSettled(job)
    }

    private func answer(_ query: Result<Query, QueryProblem>, at uptime: Int64) -> [UInt8]? {
        do throws(StoreError) {
            switch query {
            case .failure(let problem):
                return QueryReplyEncoder.malformed(problem, serverTime: now)
            case .success(.rooms(let after, let limit)):
                let serverTime = try shared?.now() ?? now
                let rooms = try store.liveRooms(after: after, limit: limit)
                return QueryReplyEncoder.rooms(
                    rooms.compactMap(LiveRoom.init), next: rooms.count == limit ? rooms.last?.id : nil,
                    serverTime: serverTime)
            case .success(.participants(let room, let after, let limit)):
                let serverTime = try shared?.now() ?? now
                let state = try store.load(BatchRequest(rooms: [room]))
                guard let known = state.rooms[room]?.room, known.definition != nil else {
                    return QueryReplyEncoder.unknownRoom(room, serverTime: serverTime)
                }
                let page = try store.participants(
                    of: room, session: known.sessionNumber, after: after, limit: limit)
                return QueryReplyEncoder.participants(
                    page, next: page.count == limit ? page.last?.user : nil, serverTime: serverTime)
            case .success(.state):
                return currentState(serverTime: now).encode()
            }
        } catch {
            // One room's fault is no failure of the store, and a question is no try of it: that has its own times.
            if error.isBatchFault {
                log.error("a query was not answered", ["error": error.description])
            } else if !health.isFailing {
                if isLocal(error) {
                    counters.storeFailures += 1
                    log.error("a query was not answered", ["error": error.description])
                } else {
                    storeFailed(error, at: uptime)
                }
            }
            return nil
        }
    }

    /// What `overtime check` shows of this worker.
    func currentState(serverTime: Instant) -> WorkerState {
        var entries = [
            WorkerState.Entry("worker", identity.id),
            WorkerState.Entry("pid", "\(identity.pid)"),
            WorkerState.Entry("host", identity.host),
            WorkerState.Entry("startedAt", TimeText.text(identity.startedAt)),
            WorkerState.Entry("phase", phase.name),
            WorkerState.Entry("store", health.isFailing ? "failing" : "ok"),
            WorkerState.Entry("blocked", links.isBlocked ? "yes" : "no"),
            WorkerState.Entry("consuming", isConsuming ? "yes" : "no"),
            WorkerState.Entry("clockSteps", "\(clockSteps.count)"),
            WorkerState.Entry("applied", "\(counters.applied)"),
            WorkerState.Entry("refused", "\(counters.refused)"),
            WorkerState.Entry("repeated", "\(counters.repeated)"),
            WorkerState.Entry("events", "\(counters.events)"),
            WorkerState.Entry("deadLettered", "\(counters.deadLettered)"),
            WorkerState.Entry("shards", "\(shards.count)"),
            WorkerState.Entry("conflicts", "\(counters.conflicts)"),
            WorkerState.Entry("inHand", "\(jobs.count)"),
            WorkerState.Entry("roomsAside", "\(aside.count)"),
        ]
        if !health.isFailing, let statistics = try? store.statistics() {
            entries += [
                WorkerState.Entry("liveRooms", "\(statistics.liveRooms)"),
                WorkerState.Entry("outbox", "\(statistics.outboxDepth)"),
                WorkerState.Entry("schema", "\(statistics.schemaVersion)"),
            ]
        }
        // Of the others what their last renewals said, of this one what is so now.
        let members = (leases.roster?.members ?? []).map { member in
            member.lease.run == identity.id
                ? Roster.Member(lease: ownLease, pid: member.pid, host: member.host) : member
        }.map(WorkerState.Member.init)
        return WorkerState(entries: entries, members: members, serverTime: serverTime)
    }
}

extension LiveRoom {
    /// A room with a waiting or running session, as the query shows it; nil for any other.
    init?(_ room: Room) {
        guard let session = room.session, session.isLive else { return nil }
        var run: Run?
        if case .running(let running) = session.phase { run = running }
        self.init(
            room: room.id, session: session.number, state: run == nil ? .waiting : .running,
            startedAt: run?.startedAt, endsAt: run?.endsAt, nextDueAt: room.dueAt,
            connected: session.connected,
            extensions: run?.extensions ?? 0, sequence: room.sequence)
    }
}

extension WorkerState.Member {
    init(_ member: Roster.Member) {
        self.init(
            run: member.lease.run, host: member.host, pid: Int64(member.pid),
            shards: member.lease.consumed.map(Int64.init), clockOffset: member.lease.clockOffset)
    }
}

extension Worker.Phase {
    var name: String {
        switch self {
        case .draining: "draining the outbox"
        case .overdue: "bringing overdue rooms up to date"
        case .serving: "serving"
        case .stopping: "stopping"
        case .stopped: "stopped"
        }
    }
}
