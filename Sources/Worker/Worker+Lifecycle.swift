import Contract
import RoomCore
import Service
import Store

/// Start, stop, the store's failures, and what is done between batches.
extension Worker {
    private static let page = 500
    /// After how many failures in turn overdue rooms are not searched for.
    private static let searchTries = 3

    // MARK: Start

    /// Takes over a page of the outbox: first what was durable and not told, then anything new. Returns whether
    /// there is more to do at once.
    func drainOutbox(after position: Int64) -> Bool {
        guard outbox.held < settings.eventBound else { return false }
        do throws(StoreError) {
            if position == 0 { try learnClock() }
            let page = try store.unpublished(after: position, limit: Self.page)
            takeOver(page)
            if let last = page.last {
                if position == 0 { log.info("publishing what is left in the outbox") }
                phase = .draining(after: last.position)
            } else if servesAfterDraining {
                servesAfterDraining = false
                phase = .serving
            } else {
                phase = .overdue(after: nil)
            }
            return true
        } catch {
            storeFailed(error, at: lastUptime)
            return false
        }
    }

    /// So that a start judges by the clock of a shared store from its first look on.
    private func learnClock() throws(StoreError) {
        guard let shared else { return }
        let asked = clock.nowMilliseconds()
        storeClock.learn(try shared.now(), askedAt: asked, answeredAt: clock.nowMilliseconds())
    }

    /// Brings a page of overdue rooms up to date, then opens the queues.
    func advanceOverdue(after last: RoomID?, at uptime: Int64) -> Bool {
        guard outbox.held < settings.eventBound else { return false }
        let isWary = health.suspectsOverdue
        var tried: [RoomID] = []
        do throws(StoreError) {
            var page = try store.overdue(at: now, after: last, limit: Self.page)
            if isWary, let first = page.rooms.first { page = OverduePage(rooms: [first], next: first) }
            tried = page.rooms.filter { !aside.contains($0) }
            if !tried.isEmpty {
                if !isWary { log.info("bringing overdue rooms up to date", ["count": tried.count]) }
                try advance(tried, at: uptime)
            }
            guard let next = page.next else { return beginServing() }
            phase = .overdue(after: next)
            return true
        } catch {
            if isWary, let room = tried.first, setAside(room, nil, error, at: uptime) { return true }
            if tried.isEmpty, searchFailures + 1 >= Self.searchTries, isLocal(error) {
                // A page that cannot be read must not keep all rooms waiting.
                counters.storeFailures += 1
                log.error(
                    "the store fails on the list of rooms: overdue ones wait for their ticks or commands",
                    ["error": error.description])
                return beginServing()
            }
            guard !tried.isEmpty, !isWary else {
                if tried.isEmpty { searchFailures += 1 }
                storeFailed(error, at: uptime)
                return false
            }
            // One of them may be to blame: at once one at a time, where the store works for others.
            health.suspectsOverdue = true
            guard isLocal(error) else {
                storeFailed(error, at: uptime)
                return false
            }
            counters.storeFailures += 1
            phase = .draining(after: 0)
            return true
        }
    }

    private func beginServing() -> Bool {
        phase = .serving
        searchFailures = 0
        health.suspectsOverdue = false
        // Still open, unless it is the start or they were given back.
        let isOpen = links.consuming.contains(ConsumerChannel.ticks)
        consumer.openChannel(ConsumerChannel.ticks)
        if shared == nil { shards.want(shards.all) }
        tendShards(at: lastUptime)
        if !isOpen { log.info("serving") }
        return !intake.isEmpty
    }

    /// Reads the outbox again where a commit for one room is in doubt.
    func drainAgain() {
        if phase == .serving { servesAfterDraining = true }
        phase = .draining(after: 0)
    }

    /// Brings rooms up to date; one whose rows make no sense is named and left out.
    private func advance(_ rooms: [RoomID], at uptime: Int64) throws(StoreError) {
        let tick = PendingTick(job: 0, rooms: rooms, reply: nil)
        do throws(StoreError) {
            finish(try decide(ticks: [tick], commands: []), commands: [], at: uptime)
        } catch {
            guard error.isBatchFault || error.isConflict else { throw error }
            guard rooms.count > 1 else {
                // Whoever changed it meanwhile has brought it up to date.
                if error.isConflict { return }
                return log.error(
                    "an overdue room is left out", ["room": rooms.first?.text, "error": error.description])
            }
            for room in rooms { try advance([room], at: uptime) }
        }
    }

    // MARK: Stop

    func beginStop(at uptime: Int64) {
        if case .stopping = phase { return }
        guard phase != .stopped else { return }
        log.info("stopping", ["inHand": jobs.count, "events": outbox.held])
        phase = .stopping(until: uptime + settings.stopGrace)
        backups.stop()
        // What is not decided goes back to the queue when the channel is closed.
        workChannels.forEach { dropUndecided(of: $0) }
    }

    /// Waits for what is in hand, then closes the channels (never `basic.cancel`: after a cancel the successor would
    /// overtake what is still unacknowledged) and signs off.
    func continueStop(until end: Int64, at uptime: Int64) {
        workChannels.forEach { dropUndecided(of: $0) }
        let hasSettled = acknowledgedAt.keys.allSatisfy { self.hasSettled($0, at: uptime) }
        let isDone = jobs.isEmpty && outbox.isQuiet && hasSettled
        guard isDone || uptime >= end else { return }
        acknowledgeFinished()
        for channel in workChannels + [ConsumerChannel.queries] { consumer.closeChannel(channel) }
        do throws(StoreError) {
            try store.markPublished(published)
            published = []
            releaseLease()
            try store.endRun(identity.id)
        } catch {
            log.warning("the store did not take the end of this run", ["error": error.description])
        }
        log.info("stopped", ["inHand": jobs.count, "events": outbox.held])
        phase = .stopped
    }

    func takeBackup(_ order: BackupOrder) {
        switch phase {
        case .stopping, .stopped: order.end(.refused("the worker is stopping: try again without it"))
        case .draining, .overdue, .serving: backups.take(order)
        }
    }

    // MARK: The store's failures

    /// Nothing was acknowledged that is not durable: what was in hand is held until the store works.
    func storeFailed(_ error: StoreError, at uptime: Int64) {
        counters.storeFailures += 1
        if !health.isFailing {
            log.error(
                "the store fails: nothing is consumed until it works again", ["error": error.description])
        }
        if error.needsAPerson { fatal = error }
        health.fail(at: uptime)
        servesAfterDraining = false
        switch phase {
        case .stopping, .stopped: break
        case .draining, .overdue, .serving: phase = .draining(after: 0)
        }
    }

    /// Tries a real transaction from time to time; closes the channels where that has not helped for long.
    func tryStore(at uptime: Int64) {
        if health.mustGiveBack(at: uptime) {
            log.warning("the store goes on failing: commands and ticks are given back to the broker")
            acknowledgeFinished()
            giveBack(at: uptime)
            releaseLease()
            health.gaveBack()
        }
        if case .stopping(let end) = phase { continueStop(until: end, at: uptime) }
        guard uptime >= health.nextTryAt else { return }
        do throws(StoreError) {
            try store.check()
            health.recover()
            log.info("the store works again")
        } catch {
            log.debug("the store still fails", ["error": error.description])
            health.fail(at: uptime)
        }
    }

    /// Whether the store fails on what was asked and works for others: it takes a probe right after.
    func isLocal(_ error: StoreError) -> Bool {
        guard !error.needsAPerson else { return false }
        do throws(StoreError) {
            try store.check()
            return true
        } catch {
            return false
        }
    }

    /// Sets aside a room that was tried alone, with its command if it was one, and has the outbox read again: whether
    /// anything was committed is unknown. False where it is the store that fails.
    func setAside(
        _ room: RoomID, _ command: Intake.WaitingCommand?, _ error: StoreError, at uptime: Int64
    ) -> Bool {
        guard health.mayBlame, isLocal(error) else { return false }
        health.blame()
        counters.storeFailures += 1
        aside.put(room, command, at: uptime)
        drainAgain()
        log.error(
            "the store fails on a room: its commands wait, others go on",
            ["room": room.text, "error": error.description])
        return true
    }

    // MARK: Between batches

    /// What became of events: jobs settled, positions to mark, refusals to tell.
    func collectProgress() {
        let progress = outbox.takeProgress()
        jobs.settle(progress.settledJobs)
        published.append(contentsOf: progress.finished)
        if let first = progress.refusedRooms.first {
            log.warning(
                "a queue bound to the events refuses events: tried again for 60 s",
                ["rooms": progress.refusedRooms.count, "first": first.text])
        }
        for event in progress.convicted {
            log.error(
                "the broker closes the channel over an event: its room waits, and is tried again in 60 s",
                eventFields(event))
        }
        for (event, closesChannel) in progress.passedOver {
            counters.passedOver += 1
            log.error(
                closesChannel
                    ? "event passed over: the broker closes the channel over it, and nobody has it"
                    : "event passed over: a queue bound to the events kept refusing it", eventFields(event))
        }
        if !progress.overdueRooms.isEmpty {
            log.warning("no confirm in time: events are sent again", ["rooms": progress.overdueRooms.count])
        }
    }

    private func eventFields(_ event: OutboxMessage) -> LogFields {
        let draft = event.draft
        return [
            "room": draft.room.text, "sequence": draft.sequence, "type": draft.type,
            "bytes": draft.body.count,
        ]
    }

    func passTime(at uptime: Int64) {
        lastUptime = uptime
        if !links.isBlocked {
            // With no channel nothing is tried, so nobody's patience may end.
            if links.publisher[PublisherChannel.events] != nil { outbox.tick(at: uptime) }
            let dropped = replies.tick(at: uptime)
            if !dropped.isEmpty {
                counters.droppedReplies += Int64(dropped.count)
                log.warning("reply dropped", ["reason": "no confirm in 60 s", "count": dropped.count])
                jobs.settle(dropped)
            }
            jobs.settle(letters.tick(at: uptime))
        }
    }

    /// Deletes published rows by themselves where no commit has come along to do it.
    func markPublished(at uptime: Int64) {
        guard !published.isEmpty else {
            publishedAt = uptime
            return
        }
        guard !health.isFailing, phase != .stopped, uptime - publishedAt >= 100 || published.count >= 1_000
        else { return }
        publishedAt = uptime
        do throws(StoreError) {
            try store.markPublished(published)
            published = []
        } catch {
            storeFailed(error, at: uptime)
        }
    }

    /// While the broker works on what was sent. A failure is said once, until it has gone well again.
    func moveLog() {
        do throws(StoreError) {
            if try store.moveLog() { saidLogStays = false }
        } catch {
            guard !saidLogStays else { return }
            saidLogStays = true
            counters.storeFailures += 1
            log.error(
                "the store's write-ahead log cannot be moved into its database and grows: tried again with each commit",
                ["error": error.description])
        }
    }

    func prune(at uptime: Int64) {
        guard phase == .serving, !health.isFailing, uptime >= pruneAt else { return }
        do throws(StoreError) {
            let retention = Retention(
                now: now, idsFor: settings.idRetention, roomsFor: settings.roomRetention)
            let count = try store.prune(retention, limit: Self.page)
            pruneAt = uptime + (count.isUnfinished ? 200 : 30_000)
        } catch {
            // What is not pruned costs nothing but space: nobody is to wait for it.
            pruneAt = uptime + 30_000
            guard error.isBatchFault || isLocal(error) else { return storeFailed(error, at: uptime) }
            if !error.isBatchFault { counters.storeFailures += 1 }
            log.error("nothing was pruned: tried again in 30 s", ["error": error.description])
        }
    }
}

extension StoreError {
    /// Going on would do harm, and waiting does not help.
    var needsAPerson: Bool {
        if case .conflict = self { return false }
        return !isTransient && !isBatchFault
    }
}
